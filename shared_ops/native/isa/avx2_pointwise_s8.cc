// int8 loops for this file's instruction set.
#define RILLET_ISA_NAMESPACE avx2
#include "pointwise_s8.inl"
