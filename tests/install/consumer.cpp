// Includes a header of sim and calls into its library: enough to prove include path and link line.
#include <cstdio>

#include "sim/core/units.h"

int main() {
  const auto third = lockstep::multiply_divide(10, 1, 3);
  std::printf("%lld\n", static_cast<long long>(third));
  return third == 3 ? 0 : 1;
}
