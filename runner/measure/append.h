#pragma once

#include <algorithm>
#include <iterator>
#include <vector>

namespace lockstep::runner {

template <class T>
void append(std::vector<T>& to, std::vector<T> from) {
  std::move(from.begin(), from.end(), std::back_inserter(to));
}

}  // namespace lockstep::runner
