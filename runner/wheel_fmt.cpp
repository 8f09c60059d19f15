// LibTorch's include folder holds an fmt of its own, which hides the distribution's in files that
// include LibTorch, and which no library of the wheel exports. Its functions are compiled here,
// once.
#ifndef FMT_HEADER_ONLY

#include <fmt/format-inl.h>

#if FMT_VERSION >= 110000

FMT_BEGIN_NAMESPACE
namespace detail {
template FMT_API dragonbox::decimal_fp<float> dragonbox::to_decimal(float) noexcept;
template FMT_API dragonbox::decimal_fp<double> dragonbox::to_decimal(double) noexcept;
template FMT_API thousands_sep_result<char> thousands_sep_impl(locale_ref);
template FMT_API char decimal_point_impl(locale_ref);
}  // namespace detail
FMT_END_NAMESPACE

#endif
#endif
