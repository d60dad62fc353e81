#define RILLET_ISA avx2
#include "pointwise_loops.h"
