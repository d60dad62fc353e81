// What a native kernel is: a pair of functions over borrowed tensors.
//
//   prepare: sees the attributes and the input types (and the data of constant inputs), refuses what it cannot take,
//            computes the output types exactly as the op's Python `infer` does, packs constant weights into memory it
//            allocates, and says how much workspace a run needs.
//   run:     computes. No allocation, no exceptions, no checks but of data-dependent indices.
//
// A kernel is one line in kernels.inc and one object `const Kernel <stem>_<dtype>` in its .cc file.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string_view>
#include <type_traits>

#include "thread_pool.h"

namespace rillet {

enum class DType : uint8_t { kF32 = 0, kF64 = 1, kI8 = 2, kU8 = 3, kI32 = 4, kI64 = 5, kBool = 6 };
constexpr int kDTypeCount = 7;
constexpr int kMaxRank = 8;
constexpr int64_t kMaxBytes = int64_t{1} << 40;  // of one tensor, were its dimensions of zero ones

inline size_t SizeOf(DType t) {
  constexpr uint8_t bytes[kDTypeCount] = {4, 8, 1, 1, 4, 8, 1};
  return bytes[static_cast<int>(t)];
}

// Whether values of this dtype stand for real numbers, not for counts, indices, shapes or truth.
inline bool IsReal(DType t) { return t == DType::kF32 || t == DType::kF64 || t == DType::kI8; }

template <class T>
struct Span {
  const T* data = nullptr;
  int64_t size = 0;
  const T& operator[](int64_t i) const { return data[i]; }
  const T* begin() const { return data; }
  const T* end() const { return data + size; }
};

// real = scale * (quantized - zero_point). count is 0 for a tensor that is not quantized, 1 per tensor, else per
// channel.
struct Quant {
  const float* scale = nullptr;
  int32_t count = 0;
  int32_t zero_point = 0;
  int32_t axis = -1;
};

// A tensor as kernels see it: dense, row-major, borrowed. `data` is null in prepare unless the tensor is constant.
// At least kSlack readable bytes follow every tensor in memory that the engine owns.
constexpr size_t kSlack = 64;
struct Tensor {
  void* data = nullptr;
  int64_t dims[kMaxRank] = {};
  int32_t rank = 0;
  DType dtype = DType::kF32;
  bool present = false;   // false: an optional input that is absent
  bool constant = false;  // data is there in prepare and never changes
  bool variable = false;  // the caller's own memory, which a run may update
  Quant quant;

  int64_t size() const {
    int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= dims[i];
    return n;
  }
  size_t bytes() const { return static_cast<size_t>(size()) * SizeOf(dtype); }
  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
};

// An attribute as it stands in the file. Booleans are ints; nested tuples are flat.
enum class AttrKind : uint8_t { kNone = 0, kInt = 1, kFloat = 2, kString = 3, kInts = 4, kFloats = 5, kProgram = 6 };
struct Attr {
  std::string_view name;
  AttrKind kind = AttrKind::kNone;
  int64_t i = 0;
  double f = 0;
  std::string_view s;
  Span<int64_t> ints;
  Span<double> floats;
};

enum class [[nodiscard]] Status : int32_t { kOk = 0, kInvalid = 1, kOutOfMemory = 2 };

constexpr int kMessageSize = 512;
struct Message {
  char text[kMessageSize] = {};
  // printf-style; keeps the first message only.
  void Set(const char* format, ...) __attribute__((format(printf, 2, 3)));
};

// What `prepare` works with. Getters of attributes record an error and return zero (or an empty span) where the
// attribute is missing or of another kind; `status()` returns it, so that a kernel may read all attributes first and
// check once.
class Prepare {
 public:
  Span<Tensor> inputs;
  Tensor* outputs = nullptr;  // dtype and quant are set from the file; prepare sets rank and dims
  int64_t output_count = 0;
  int threads = 1;  // the most threads that a run may use: workspace "per thread" counts these

  bool Has(int i) const { return i < inputs.size && inputs[i].present; }
  // Records an error where input i is absent: kernels ask `Has` before they touch an optional input.
  const Tensor& in(int i) const { return Has(i) ? inputs[i] : Missing(i); }
  Tensor& out(int i) { return outputs[i]; }

  int64_t Int(const char* name);
  double Double(const char* name);
  float Float(const char* name) { return static_cast<float>(Double(name)); }
  bool Bool(const char* name) { return Int(name) != 0; }
  std::string_view String(const char* name);
  Span<int64_t> Ints(const char* name);
  Span<double> Floats(const char* name);

  // Sets the type of output i. Fails if the file declares another dtype, or if a dimension or the size is out of range.
  Status SetOutput(int i, DType dtype, int rank, const int64_t* dims);
  Status SetOutputLike(int i, const Tensor& t) { return SetOutput(i, t.dtype, t.rank, t.dims); }
  // Refuses an input that a run is to update in place, unless it is a variable: constants may lie in read-only memory.
  Status NeedVariable(int i);

  // Memory that lives as long as the prepared kernel: 64-byte aligned, zeroed, kSlack readable behind. Null: out of
  // memory.
  void* Allocate(size_t bytes);
  template <class T>
  T* AllocateArray(int64_t n) {
    const bool fits = n >= 0 && n <= kMaxBytes / static_cast<int64_t>(sizeof(T));
    return static_cast<T*>(Allocate(fits ? static_cast<size_t>(n) * sizeof(T) : SIZE_MAX));
  }
  // The kernel's state, handed to run. Zeroed; never destroyed, so T must be trivially destructible.
  template <class T>
  T* NewState() {
    static_assert(std::is_trivially_destructible_v<T>);
    void* p = Allocate(sizeof(T));
    state = p;
    return p ? new (p) T() : nullptr;
  }
  // Scratch memory of a run, shared by all kernels of a context (64-byte aligned). The largest request counts.
  void NeedWorkspace(size_t bytes) {
    if (bytes > workspace_bytes) workspace_bytes = bytes;
  }

  Status Fail(const char* format, ...) __attribute__((format(printf, 2, 3)));
  Status status() const { return status_; }

  // Set by the engine before, read by it after.
  Span<Attr> attrs;
  Message* message = nullptr;
  void* memory = nullptr;  // opaque; passed to `allocate`
  void* (*allocate)(void* memory, size_t bytes) = nullptr;
  void* state = nullptr;
  size_t workspace_bytes = 0;

 private:
  const Attr* Find(const char* name, AttrKind kind);
  const Tensor& Missing(int i) const;
  mutable Status status_ = Status::kOk;
};

// What `run` works with.
class Run {
 public:
  Span<Tensor> inputs;
  Tensor* outputs = nullptr;
  int64_t output_count = 0;
  const void* state_ptr = nullptr;
  void* workspace = nullptr;
  ThreadPool* pool = nullptr;
  Message* message = nullptr;

  bool Has(int i) const { return i < inputs.size && inputs[i].present; }
  const Tensor& in(int i) const { return inputs[i]; }
  Tensor& out(int i) const { return outputs[i]; }
  template <class T>
  const T& state() const {
    return *static_cast<const T*>(state_ptr);
  }
  // Splits [0, n) over the pool's threads in pieces of at least `grain`: body(begin, end, thread).
  template <class F>
  void ParallelFor(int64_t n, int64_t grain, const F& body) const {
    pool->ParallelFor(n, grain, body);
  }
  Status Fail(const char* format, ...) const __attribute__((format(printf, 2, 3)));
};

struct Kernel {
  Status (*prepare)(Prepare&);
  Status (*run)(const Run&);
};

// Flags of kernels.inc.
constexpr uint32_t kPlain = 0;
constexpr uint32_t kAlias =
    1;  // output 0 is input 0's bytes under another shape: the planner shares them, run is not called
constexpr uint32_t kInPlace =
    2;  // output 0 may lie where input 0 lay, if nobody reads input 0 afterwards and sizes agree
constexpr uint32_t kTraining = 4;    // linked into the full library only
constexpr uint32_t kShapeFirst = 8;  // input 0 is a shape: input 1 has the dtype that the kernel is listed for

struct KernelEntry {
  const char* op;
  int version;
  // Of the first input of real numbers (f32, f64, i8); where there is none, of input 0, or of output 0; or "any".
  // Unless it is "any", input 0 has this dtype, or input 1 where the kernel is kShapeFirst: the engine sees to it.
  const char* dtype;
  uint32_t flags;
  const Kernel* kernel;
};

Span<KernelEntry> AllKernels();
// The kernel for (op, version, dtype): an exact dtype before "any". Null where there is none.
const KernelEntry* FindKernel(std::string_view op, int version, DType dtype);
const char* NameOf(DType dtype);

// Declared here so that every .cc sees its own kernels' declarations (a const object has internal linkage otherwise).
#define RILLET_KERNEL(op, version, stem, dtype, flags) extern const Kernel stem##_##dtype;
#include "kernels.inc"
#ifdef RILLET_TRAINING
#include "../../train/native/kernels.inc"
#include "training/kernels.inc"
#endif
#undef RILLET_KERNEL

}  // namespace rillet
