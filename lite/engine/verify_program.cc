// What must hold inside a program: possible tensors, indices in range, everything written once and before it is read.
#include <cmath>
#include <cstring>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "kernel.h"
#include "verify.h"

namespace rillet {
namespace {

using format::Kind;

Result BadTensor(const format::Tensor& t, const char* what) {
  return Refuse(RILLET_BAD_TENSOR, "tensor '%.80s': %s", t.name()->c_str(), what);
}

// Bytes of a tensor whose dimensions are all known, in *bytes; false if they do not fit. What stands beside a dimension
// of zero must fit too: kernels multiply some of the dimensions.
bool SizeInBytes(const format::Tensor& t, uint64_t* bytes) {
  int64_t n = static_cast<int64_t>(SizeOf(static_cast<DType>(t.dtype())));
  bool empty = false;
  for (uint32_t i = 0; t.shape() && i < t.shape()->size(); ++i) {
    const int64_t d = t.shape()->Get(i);
    empty |= d == 0;
    if (d > 0 && (__builtin_mul_overflow(n, d, &n) || n > kMaxBytes)) return false;
  }
  *bytes = empty ? 0 : static_cast<uint64_t>(n);
  return true;
}

Result VerifyQuant(const format::Tensor& t) {
  const format::Quant* q = t.quant();
  if (!q) return {};
  const DType dtype = static_cast<DType>(t.dtype());
  if (dtype != DType::kI8 && dtype != DType::kU8 && dtype != DType::kI32)
    return BadTensor(t, "only i8, u8 and i32 tensors may be quantized");
  if (q->scale()->size() == 0) return BadTensor(t, "quantized without a scale");
  for (float s : *q->scale())
    if (!(s > 0) || !std::isfinite(s)) return BadTensor(t, "a scale is not a positive number");
  const int64_t zero = q->zero_point();
  if (dtype == DType::kI8 && (zero < -128 || zero > 127)) return BadTensor(t, "zero point outside i8");
  if (dtype == DType::kU8 && (zero < 0 || zero > 255)) return BadTensor(t, "zero point outside u8");
  const int64_t rank = t.shape() ? t.shape()->size() : 0;
  if (q->axis() < -1 || q->axis() >= rank) return BadTensor(t, "quantization axis outside the shape");
  const int64_t channels = q->axis() < 0 ? 1 : t.shape()->Get(static_cast<uint32_t>(q->axis()));
  if (channels != q->scale()->size()) return BadTensor(t, "number of scales differs from number of channels");
  if (q->axis() >= 0 && zero != 0) return BadTensor(t, "per-channel quantization with a zero point");
  return {};
}

Result VerifyTensor(const format::Model& model, const format::Tensor& t) {
  if (t.dtype() > format::DType_Bool) return BadTensor(t, "unknown dtype");
  if (t.kind() > format::Kind_Variable) return BadTensor(t, "unknown kind");
  if (!IsAligned(t.shape())) return Refuse(RILLET_MALFORMED, "a shape is not aligned");
  const uint32_t rank = t.shape() ? t.shape()->size() : 0;
  if (rank > kMaxRank) return BadTensor(t, "more than 8 dimensions");
  if (t.dims() && t.dims()->size() != rank) return BadTensor(t, "names of dimensions do not match the shape");
  bool known = true;
  for (uint32_t i = 0; i < rank; ++i) {
    const int64_t d = t.shape()->Get(i);
    if (d < -1 || d > kMaxBytes) return BadTensor(t, "impossible dimension");
    known &= d >= 0;
  }
  uint64_t bytes = 0;
  if (!SizeInBytes(t, &bytes)) return BadTensor(t, "too large");
  RILLET_TRY(VerifyQuant(t));
  if (t.kind() != format::Kind_Constant)
    return t.section() == -1 ? Result{} : BadTensor(t, "only constants have a section");
  if (!known) return BadTensor(t, "a constant of unknown shape");
  const int64_t sections = model.sections() ? model.sections()->size() : 0;
  if (t.section() < 0 || t.section() >= sections)
    return Refuse(RILLET_BAD_REFERENCE, "tensor '%.80s': section %d of %lld", t.name()->c_str(), t.section(),
                  static_cast<long long>(sections));
  const uint64_t have = model.sections()->Get(static_cast<uint32_t>(t.section()))->size();
  if (have != bytes)
    return Refuse(RILLET_BAD_TENSOR, "tensor '%.80s': section of %llu bytes, expected %llu", t.name()->c_str(),
                  static_cast<unsigned long long>(have), static_cast<unsigned long long>(bytes));
  return {};
}

Result BadOperation(rillet_status status, const format::Operation& o, const char* what, int index) {
  return Refuse(status, "[%.60s at '%.120s'] %s (%d)", o.op()->c_str(), o.name() ? o.name()->c_str() : "", what, index);
}

// Lists are sizes, positions and axes: 31 bits, so that kernels may multiply two of them, or "to the end" as slices say
// it.
bool IsPlausible(const flatbuffers::Vector<int64_t>* ints) {
  if (!ints) return true;
  for (int64_t v : *ints)
    if (v != INT64_MAX && v != INT64_MIN && (v > INT32_MAX || v < -int64_t{INT32_MAX})) return false;
  return true;
}

Result VerifyAttrs(const format::Model& model, const format::Operation& o) {
  if (!o.attrs()) return {};
  for (uint32_t i = 0; i < o.attrs()->size(); ++i) {
    const format::Attr& a = *o.attrs()->Get(i);
    const int index = static_cast<int>(i);
    if (a.kind() > format::AttrKind_Program)
      return BadOperation(RILLET_MALFORMED, o, "unknown kind of attribute", index);
    if (!IsAligned(a.ints()) || !IsAligned(a.floats()))
      return BadOperation(RILLET_MALFORMED, o, "attribute is not aligned", index);
    if (!IsPlausible(a.ints()))
      return BadOperation(RILLET_BAD_OPERATION, o, "attribute holds a number beyond 31 bits", index);
    if (a.kind() == format::AttrKind_String && !a.s())
      return BadOperation(RILLET_MALFORMED, o, "attribute without text", index);
    if (a.kind() == format::AttrKind_Program && (a.i() < 0 || a.i() >= model.programs()->size()))
      return BadOperation(RILLET_BAD_REFERENCE, o, "attribute names a program that is not there", index);
  }
  return {};
}

// Walks the operations in order. `ready` holds which tensors have a value so far.
class OrderCheck {
 public:
  explicit OrderCheck(const format::Program& program)
      : tensors_(*program.tensors()), ready_(program.tensors()->size(), 0) {
    for (uint32_t i = 0; i < tensors_.size(); ++i) ready_[i] = tensors_.Get(i)->kind() != format::Kind_Temporary;
  }

  Result Visit(const format::Operation& o) {
    for (uint32_t i = 0; o.inputs() && i < o.inputs()->size(); ++i) {
      const int32_t t = o.inputs()->Get(i);
      if (t < -1 || t >= count()) return BadOperation(RILLET_BAD_REFERENCE, o, "input is not a tensor", t);
      if (t >= 0 && !ready_[static_cast<size_t>(t)])
        return BadOperation(RILLET_BAD_ORDER, o, "input is read before it is written: tensor", t);
    }
    if (!o.outputs()) return {};
    for (int32_t t : *o.outputs()) {
      if (t < 0 || t >= count()) return BadOperation(RILLET_BAD_REFERENCE, o, "output is not a tensor", t);
      if (ready_[static_cast<size_t>(t)])
        return BadOperation(RILLET_BAD_ORDER, o, "output is written already, or not a temporary: tensor", t);
      ready_[static_cast<size_t>(t)] = 1;
    }
    return {};
  }

  bool IsReady(int32_t t) const { return t >= 0 && t < count() && ready_[static_cast<size_t>(t)]; }
  int32_t count() const { return static_cast<int32_t>(tensors_.size()); }

 private:
  const flatbuffers::Vector<flatbuffers::Offset<format::Tensor>>& tensors_;
  std::vector<uint8_t> ready_;
};

template <class T>
int64_t Length(const flatbuffers::Vector<T>* v) {
  return v ? v->size() : 0;
}

int64_t CountNumbers(const format::Operation& o) {
  int64_t n = Length(o.inputs()) + Length(o.outputs()) + Length(o.attrs());
  for (uint32_t i = 0; o.attrs() && i < o.attrs()->size(); ++i) n += Length(o.attrs()->Get(i)->ints());
  return n;
}

// Of every list that is walked: operands, scales, attributes.
int64_t CountNumbers(const format::Program& p) {
  int64_t n = Length(p.inputs()) + Length(p.outputs());
  for (const format::Tensor* t : *p.tensors()) n += t->quant() ? Length(t->quant()->scale()) : 0;
  for (const format::Operation* o : *p.operations()) n += CountNumbers(*o);
  return n;
}

Result VerifyInputs(const format::Program& p) {
  std::vector<uint8_t> listed(p.tensors()->size(), 0);
  const int64_t count = p.tensors()->size();
  for (uint32_t i = 0; p.inputs() && i < p.inputs()->size(); ++i) {
    const int32_t t = p.inputs()->Get(i);
    if (t < 0 || t >= count)
      return Refuse(RILLET_BAD_REFERENCE, "input %u is tensor %d of %lld", i, t, (long long)count);
    if (p.tensors()->Get(static_cast<uint32_t>(t))->kind() != format::Kind_Input || listed[static_cast<size_t>(t)]++)
      return Refuse(RILLET_BAD_ORDER, "input %u: tensor %d is not an input, or listed twice", i, t);
  }
  for (uint32_t t = 0; t < p.tensors()->size(); ++t)
    if (p.tensors()->Get(t)->kind() == format::Kind_Input && !listed[t])
      return Refuse(RILLET_BAD_ORDER, "tensor %u is an input that the program does not list", t);
  return {};
}

}  // namespace

Result VerifyProgram(const format::Model& model, const format::Program& p, int64_t* numbers) {
  if (p.tensors()->size() > INT32_MAX) return Refuse(RILLET_MALFORMED, "too many tensors");
  if ((*numbers -= CountNumbers(p)) < 0) return Refuse(RILLET_MALFORMED, "more numbers than the file has room for");
  std::unordered_set<std::string_view> names;
  for (const format::Tensor* t : *p.tensors()) {
    RILLET_TRY(VerifyTensor(model, *t));
    if (!names.insert(t->name()->string_view()).second) return BadTensor(*t, "a second tensor of this name");
  }
  RILLET_TRY(VerifyInputs(p));
  OrderCheck order(p);
  for (const format::Operation* o : *p.operations()) {
    if (o->version() < 1) return BadOperation(RILLET_MALFORMED, *o, "impossible version", o->version());
    RILLET_TRY(VerifyAttrs(model, *o));
    RILLET_TRY(order.Visit(*o));
  }
  for (uint32_t i = 0; p.outputs() && i < p.outputs()->size(); ++i) {
    const int32_t t = p.outputs()->Get(i);
    if (t < 0 || t >= order.count())
      return Refuse(RILLET_BAD_REFERENCE, "output %u is tensor %d of %d", i, t, order.count());
    if (!order.IsReady(t)) return Refuse(RILLET_BAD_ORDER, "output %u: nothing writes tensor %d", i, t);
  }
  return {};
}

// Programs may only call programs that stand after them: so there is no circle, and no search.
Result VerifyCalls(const format::Model& model) {
  for (uint32_t p = 0; p < model.programs()->size(); ++p)
    for (const format::Operation* o : *model.programs()->Get(p)->operations()) {
      if (!o->attrs()) continue;
      for (const format::Attr* a : *o->attrs())
        if (a->kind() == format::AttrKind_Program && a->i() <= p)
          return BadOperation(RILLET_BAD_REFERENCE, *o, "calls a program that does not stand after its own",
                              static_cast<int>(a->i()));
    }
  return {};
}

}  // namespace rillet
