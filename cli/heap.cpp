#include "cli/heap.h"

#include <cstdlib>  // defines __GLIBC__ where it is
#include <memory>

#ifdef __GLIBC__
#include <malloc.h>
#include <sys/mman.h>
#endif

namespace lockstep::cli {

void prepare_heap() {
#ifdef __GLIBC__
  constexpr std::size_t kMiB = 1 << 20;
  constexpr std::size_t kHugePage = 2 * kMiB, kPiece = 8 * kMiB;
  mallopt(M_MMAP_THRESHOLD, 32 * kMiB);  // glibc takes no more
  mallopt(M_TRIM_THRESHOLD, 1024 * kMiB);
  // Grows the heap by one piece, of which nothing is touched before the kernel knows.
  void* piece = std::malloc(kPiece);
  void* begin = piece;
  std::size_t room = kPiece;
  begin = std::align(kHugePage, kPiece - kHugePage, begin, room);
  // A hint: where huge pages are off it fails, and nothing changes.
  if (begin != nullptr) madvise(begin, kPiece - kHugePage, MADV_HUGEPAGE);
  std::free(piece);
#endif
}

}  // namespace lockstep::cli
