// With Catch2 3 main comes from its library; version 2 generates it here, once for every
// executable.
#if LOCKSTEP_CATCH2_MAJOR < 3
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#endif
