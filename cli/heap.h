#pragma once

namespace lockstep::cli {

/// Makes the heap start as one piece in huge pages and keeps what is freed for the next use. A run
/// of some milliseconds otherwise spends a fifth of them in page faults. Without glibc: does
/// nothing.
void prepare_heap();

}  // namespace lockstep::cli
