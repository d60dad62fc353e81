// A verified model: immutable, shared by any number of contexts.
#pragma once
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "kernel.h"
#include "result.h"
#include "verify.h"

namespace rillet {

enum class Kind : uint8_t { kTemporary = 0, kInput = 1, kConstant = 2, kVariable = 3 };

struct TensorInfo {
  const char* name;
  DType dtype;
  Kind kind;
  int32_t rank;
  int64_t dims[kMaxRank];           // -1: known at run time only
  const char* dim_names[kMaxRank];  // null where a dimension has no name
  Quant quant;
  void* data;  // of a constant: read only
};

struct OperationInfo {
  const char* op;
  int32_t version;
  const char* name;    // never null
  const char* source;  // never null
  Span<int32_t> inputs;
  Span<int32_t> outputs;
  std::vector<Attr> attrs;
  const KernelEntry* kernel;
};

class Model {
 public:
  static Result FromFile(const char* path, std::unique_ptr<Model>* model);
  // Borrows `bytes` if they are aligned to 16, else copies them.
  static Result FromMemory(const void* bytes, size_t size, std::unique_ptr<Model>* model);
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  std::vector<TensorInfo> tensors;  // of the entry program
  std::vector<OperationInfo> operations;
  Span<int32_t> inputs;
  Span<int32_t> outputs;
  std::vector<int32_t> variables;  // tensor indices, in order
  std::vector<std::pair<const char*, const char*>> metadata;

 private:
  Model() = default;
  Result Open(const char* path);
  Result Load();
  void Decode(const format::Model& file);
  Result ResolveKernels();
  bool IsRealTensor(int32_t t) const { return t >= 0 && IsReal(tensors[static_cast<size_t>(t)].dtype); }

  const uint8_t* bytes_ = nullptr;
  size_t size_ = 0;
  void* mapped_ = nullptr;
  void* copy_ = nullptr;
};

// "[Conv2D at 'block3/conv' (train.py:41)] "
std::string Located(const OperationInfo& o);
// "[1, ?, 3]"
std::string ShapeText(const int64_t* dims, int32_t rank);

}  // namespace rillet
