#define RILLET_ISA avx2
#include "nn_f32_loops.h"
