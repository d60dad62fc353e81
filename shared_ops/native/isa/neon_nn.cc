#define RILLET_ISA neon
#include "nn_f32_loops.h"
