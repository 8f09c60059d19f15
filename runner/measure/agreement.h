#pragma once

#include "runner/communicators/communicator.h"
#include "sim/records/collective_table.h"

namespace lockstep::runner {

/// How long hosts take to agree on something small ("agreement", as host time by bytes):
/// all-reduces of as many floats as Horovod's negotiations have, one after the other. Every rank
/// calls it; what each of them sees is a sample.
CopyTable measure_agreement(Communicator& control);

}  // namespace lockstep::runner
