// Proves that a file is sound before anything in it is believed.
#pragma once
#include <cstddef>
#include <cstdint>

#include "model_generated.h"
#include "result.h"

namespace rillet {

constexpr size_t kHeaderSize = 64;
constexpr size_t kSectionAlignment = 64;

// `bytes` must be aligned to 16. Checks header, checksums, structure, sections, tensors, operations and their order,
// and that programs do not call each other in a circle. Afterwards everything in `*model` may be followed without a
// check.
Result Verify(const uint8_t* bytes, size_t size, const format::Model** model);

// Whether a list of eight-byte numbers lies where such numbers may; FlatBuffers' own verifier checks the list's start
// only.
template <class T>
bool IsAligned(const flatbuffers::Vector<T>* v) {
  return !v || reinterpret_cast<uintptr_t>(v->Data()) % 8 == 0;
}

// The part of Verify that looks into one program. Every list of numbers counts against `numbers`: no real file names
// the same long list again and again, so the time is bounded by the size of the file.
Result VerifyProgram(const format::Model& model, const format::Program& program, int64_t* numbers);
Result VerifyCalls(const format::Model& model);

}  // namespace rillet
