#define RILLET_ISA scalar
#include "pointwise_loops.h"
