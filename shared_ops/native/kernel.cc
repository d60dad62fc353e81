// The kernel table, and what prepare and run share: attributes by name, output types, error messages.
#include "kernel.h"

#include <cstdarg>
#include <cstdio>

namespace rillet {
namespace {

#ifdef RILLET_TRAINING
constexpr uint32_t kLeftOut = 0;
#else
constexpr uint32_t kLeftOut = kTraining;
#endif

// A kernel that this library leaves out is not named at all, so that the linker drops it.
constexpr KernelEntry kListed[] = {
#define RILLET_KERNEL(op, version, stem, dtype, flags) \
  {#op, version, #dtype, flags, (flags) & kLeftOut ? nullptr : &stem##_##dtype},
#include "kernels.inc"
#ifdef RILLET_TRAINING
#include "../../train/native/kernels.inc"
#include "training/kernels.inc"
#endif
#undef RILLET_KERNEL
};

struct Table {
  KernelEntry entries[sizeof(kListed) / sizeof(kListed[0])];
  int64_t size;
};

constexpr Table MakeTable() {
  Table table{};
  for (const KernelEntry& e : kListed)
    if (!(e.flags & kLeftOut)) table.entries[table.size++] = e;
  return table;
}

constexpr Table kTable = MakeTable();

void Format(Message* message, const char* format, va_list args) {
  if (message && message->text[0] == 0) vsnprintf(message->text, kMessageSize, format, args);
}

}  // namespace

void Message::Set(const char* format, ...) {
  va_list args;
  va_start(args, format);
  Format(this, format, args);
  va_end(args);
}

Status Prepare::Fail(const char* format, ...) {
  va_list args;
  va_start(args, format);
  Format(message, format, args);
  va_end(args);
  return status_ = Status::kInvalid;
}

Status Run::Fail(const char* format, ...) const {
  va_list args;
  va_start(args, format);
  Format(message, format, args);
  va_end(args);
  return Status::kInvalid;
}

const Attr* Prepare::Find(const char* name, AttrKind kind) {
  for (const Attr& a : attrs)
    if (a.name == name) {
      if (a.kind == kind) return &a;
      // A float that happens to be whole may have been written as an int, and an empty list has no kind of its own.
      if (kind == AttrKind::kFloat && a.kind == AttrKind::kInt) return &a;
      if (a.kind == AttrKind::kNone && (kind == AttrKind::kInts || kind == AttrKind::kFloats)) return &a;
      (void)Fail("attribute '%s' is of another kind than this op expects", name);
      return nullptr;
    }
  (void)Fail("attribute '%s' is missing", name);
  return nullptr;
}

const Tensor& Prepare::Missing(int i) const {
  static const Tensor kAbsent;
  if (message && message->text[0] == 0) message->Set("input %d is missing", i);
  if (status_ == Status::kOk) status_ = Status::kInvalid;
  return kAbsent;
}

int64_t Prepare::Int(const char* name) {
  const Attr* a = Find(name, AttrKind::kInt);
  return a ? a->i : 0;
}

double Prepare::Double(const char* name) {
  const Attr* a = Find(name, AttrKind::kFloat);
  if (!a) return 0;
  return a->kind == AttrKind::kInt ? static_cast<double>(a->i) : a->f;
}

std::string_view Prepare::String(const char* name) {
  const Attr* a = Find(name, AttrKind::kString);
  return a ? a->s : std::string_view();
}

Span<int64_t> Prepare::Ints(const char* name) {
  const Attr* a = Find(name, AttrKind::kInts);
  return a ? a->ints : Span<int64_t>();
}

Span<double> Prepare::Floats(const char* name) {
  const Attr* a = Find(name, AttrKind::kFloats);
  return a ? a->floats : Span<double>();
}

Status Prepare::NeedVariable(int i) {
  if (in(i).variable || status_ != Status::kOk) return status_;
  return Fail("input %d: expected a variable, as it is updated in place", i);
}

void* Prepare::Allocate(size_t bytes) {
  void* p = allocate(memory, bytes);
  if (!p) {
    (void)Fail("out of memory: %zu bytes", bytes);
    status_ = Status::kOutOfMemory;
  }
  return p;
}

Status Prepare::SetOutput(int i, DType dtype, int rank, const int64_t* dims) {
  if (i >= output_count) return Fail("output %d is missing", i);
  Tensor& t = outputs[i];
  if (t.dtype != dtype) return Fail("output %d: got %s, expected %s", i, NameOf(t.dtype), NameOf(dtype));
  if (rank < 0 || rank > kMaxRank) return Fail("output %d: got rank %d, expected at most %d", i, rank, kMaxRank);
  int64_t size = static_cast<int64_t>(SizeOf(dtype));
  for (int d = 0; d < rank; ++d) {
    if (dims[d] < 0) return Fail("output %d: dimension %d would be %lld", i, d, static_cast<long long>(dims[d]));
    if (dims[d] > 0 && (__builtin_mul_overflow(size, dims[d], &size) || size > kMaxBytes))
      return Fail("output %d: too large", i);
    t.dims[d] = dims[d];
  }
  t.rank = rank;
  return Status::kOk;
}

const char* NameOf(DType dtype) {
  static constexpr const char* names[kDTypeCount] = {"f32", "f64", "i8", "u8", "i32", "i64", "bool"};
  return names[static_cast<int>(dtype)];
}

Span<KernelEntry> AllKernels() { return {kTable.entries, kTable.size}; }

const KernelEntry* FindKernel(std::string_view op, int version, DType dtype) {
  const KernelEntry* any = nullptr;
  for (const KernelEntry& e : AllKernels()) {
    if (op != e.op || version != e.version) continue;
    if (std::string_view(e.dtype) == NameOf(dtype)) return &e;
    if (std::string_view(e.dtype) == "any") any = &e;
  }
  return any;
}

}  // namespace rillet
