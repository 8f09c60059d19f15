#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/core/units.h"
#include "sim/records/collective_table.h"
#include "sim/records/origin.h"

namespace lockstep {

/// Bus bandwidth / (bytes / time), as nccl-tests defines it (doc/PERFORMANCE.md): what each link
/// must carry for the collective to take that long, whatever the number of workers. 2(n-1)/n of an
/// all-reduce, (n-1)/n of all-gather, reduce-scatter and all-to-all, whose bytes are the whole
/// array, 1 of broadcast, reduce and send_recv; n-1 of gather and scatter, whose bytes are one
/// worker's here and all n workers' there. workers >= 2.
double bus_factor(std::string_view collective, int workers);

/// Of a point of `table`, by its median; zero where it has no bytes or takes no time.
Bandwidth bus_bandwidth(const CollectiveTable& table, const CollectivePoint& point);

/// What a GPU can send to another of its host, as NVIDIA's data sheets state it: links of a pair
/// times the rate of one, one way. Nothing where the GPUs or how they are connected is not known.
std::optional<Bandwidth> link_bandwidth(const Machine& machine);

/// "334.2 GB/s, 74 % of the link's", or without the share where the link is not known.
std::string describe_bus(Bandwidth bus, const std::optional<Bandwidth>& link);

}  // namespace lockstep
