#define RILLET_ISA neon
#include "pointwise_loops.h"
