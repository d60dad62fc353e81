#define RILLET_ISA scalar
#include "nn_f32_loops.h"
