#define RILLET_ISA avx512
#include "pointwise_loops.h"
