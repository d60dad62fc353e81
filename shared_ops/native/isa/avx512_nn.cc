#define RILLET_ISA avx512
#include "nn_f32_loops.h"
