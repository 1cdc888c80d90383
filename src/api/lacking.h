// What of the general call a device does not compute in this release. One place decides.
#pragma once

#include "api/status.h"
#include "core/general.h"
#include "core/problem.h"

namespace softmax {

// Refuses a checked problem with features that the device lacks, with NOT_SUPPORTED* and a
// sentence.
Status check_device_has(const DeviceCaps &caps, const Problem &problem);

}  // namespace softmax
