#include "model.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace rillet {
namespace {

const char* Text(const flatbuffers::String* s) { return s ? s->c_str() : ""; }

template <class T>
Span<T> View(const flatbuffers::Vector<T>* v) {
  return v ? Span<T>{v->data(), static_cast<int64_t>(v->size())} : Span<T>{};
}

Attr DecodeAttr(const format::Attr& a) {
  Attr out;
  out.name = a.name()->string_view();
  out.kind = static_cast<AttrKind>(a.kind());
  out.i = a.i();
  out.f = a.f();
  if (a.s()) out.s = a.s()->string_view();
  out.ints = View(a.ints());
  out.floats = View(a.floats());
  return out;
}

TensorInfo DecodeTensor(const uint8_t* bytes, const format::Model& file, const format::Tensor& t) {
  TensorInfo info = {};
  info.name = t.name()->c_str();
  info.dtype = static_cast<DType>(t.dtype());
  info.kind = static_cast<Kind>(t.kind());
  info.rank = t.shape() ? static_cast<int32_t>(t.shape()->size()) : 0;
  for (int32_t i = 0; i < info.rank; ++i) info.dims[i] = t.shape()->Get(static_cast<uint32_t>(i));
  for (int32_t i = 0; t.dims() && i < info.rank; ++i) {
    const flatbuffers::String* name = t.dims()->Get(static_cast<uint32_t>(i));
    if (name->size()) info.dim_names[i] = name->c_str();
  }
  if (const format::Quant* q = t.quant())
    info.quant = {q->scale()->data(), static_cast<int32_t>(q->scale()->size()), q->zero_point(), q->axis()};
  if (info.kind == Kind::kConstant)
    info.data = const_cast<uint8_t*>(bytes + file.sections()->Get(static_cast<uint32_t>(t.section()))->offset());
  return info;
}

}  // namespace

std::string Located(const OperationInfo& o) {
  std::string text = std::string("[") + o.op;
  if (*o.name) text += std::string(" at '") + o.name + "'";
  if (*o.source) text += std::string(" (") + o.source + ")";
  return text + "] ";
}

std::string ShapeText(const int64_t* dims, int32_t rank) {
  std::string text = "[";
  for (int32_t i = 0; i < rank; ++i)
    text += (i ? ", " : "") + (dims[i] < 0 ? std::string("?") : std::to_string(dims[i]));
  return text + "]";
}

Result Model::FromFile(const char* path, std::unique_ptr<Model>* model) {
  std::unique_ptr<Model> m(new Model);
  RILLET_TRY(m->Open(path));
  if (Result r = m->Load(); !r.ok()) return {r.status, std::string(path) + ": " + r.text};
  *model = std::move(m);
  return {};
}

Result Model::FromMemory(const void* bytes, size_t size, std::unique_ptr<Model>* model) {
  std::unique_ptr<Model> m(new Model);
  m->bytes_ = static_cast<const uint8_t*>(bytes);
  m->size_ = size;
  if (reinterpret_cast<uintptr_t>(bytes) % 16) {
    m->copy_ =
        std::aligned_alloc(kSectionAlignment, (size + kSectionAlignment) / kSectionAlignment * kSectionAlignment);
    if (!m->copy_) return Refuse(RILLET_OUT_OF_MEMORY, "no memory to copy an unaligned model of %zu bytes", size);
    m->bytes_ = static_cast<const uint8_t*>(std::memcpy(m->copy_, bytes, size));
  }
  RILLET_TRY(m->Load());
  *model = std::move(m);
  return {};
}

Model::~Model() {
  if (mapped_) munmap(mapped_, size_);
  std::free(copy_);
}

Result Model::Open(const char* path) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return Refuse(RILLET_FILE_NOT_FOUND, "cannot open '%.400s': %s", path, std::strerror(errno));
  struct stat info;
  if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(file);
    return Refuse(RILLET_FILE_NOT_FOUND, "cannot read '%.400s': not a file", path);
  }
  size_ = static_cast<size_t>(info.st_size);
  static const uint8_t kNothing[16] = {};
  bytes_ = kNothing;
  if (size_ > 0) {
    void* p = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
    const int why = errno;
    if (p == MAP_FAILED) {
      close(file);
      return Refuse(RILLET_FILE_NOT_FOUND, "cannot map '%.400s': %s", path, std::strerror(why));
    }
    mapped_ = p;
    bytes_ = static_cast<const uint8_t*>(p);
  }
  close(file);
  return {};
}

Result Model::Load() {
  const format::Model* file = nullptr;
  RILLET_TRY(Verify(bytes_, size_, &file));
  Decode(*file);
  return ResolveKernels();
}

void Model::Decode(const format::Model& file) {
  const format::Program& program = *file.programs()->Get(0);
  for (const format::Tensor* t : *program.tensors()) {
    if (t->kind() == format::Kind_Variable) variables.push_back(static_cast<int32_t>(tensors.size()));
    tensors.push_back(DecodeTensor(bytes_, file, *t));
  }
  for (const format::Operation* o : *program.operations()) {
    OperationInfo info = {o->op()->c_str(),   o->version(), Text(o->name()), Text(o->source()), View(o->inputs()),
                          View(o->outputs()), {},           nullptr};
    if (o->attrs())
      for (const format::Attr* a : *o->attrs()) info.attrs.push_back(DecodeAttr(*a));
    operations.push_back(std::move(info));
  }
  inputs = View(program.inputs());
  outputs = View(program.outputs());
  if (file.metadata())
    for (const format::KeyValue* kv : *file.metadata()) metadata.emplace_back(kv->key()->c_str(), Text(kv->value()));
}

Result Model::ResolveKernels() {
  for (OperationInfo& o : operations) {
    int32_t key = o.inputs.size ? o.inputs[0] : o.outputs.size ? o.outputs[0] : -1;
    if (key < 0) return {RILLET_BAD_OPERATION, Located(o) + "input 0 is missing"};
    // Shapes and indices may come before the values that a kernel is for.
    int64_t position = 0;
    while (position < o.inputs.size && !IsRealTensor(o.inputs[position])) ++position;
    if (position < o.inputs.size) key = o.inputs[position];
    else position = 0;
    const DType dtype = tensors[static_cast<size_t>(key)].dtype;
    o.kernel = FindKernel(o.op, o.version, dtype);
    // A kernel for floats that were handed bytes first would read and write beyond them.
    const int64_t expected = o.kernel && o.kernel->flags & kShapeFirst ? 1 : 0;
    if (o.kernel && position != expected && std::strcmp(o.kernel->dtype, "any") != 0)
      return {RILLET_BAD_OPERATION, Located(o) + "input " + std::to_string(expected) + ": expected " + o.kernel->dtype};
    if (!o.kernel)
      return {RILLET_UNKNOWN_OP, Located(o) + "no kernel for version " + std::to_string(o.version) + " on " +
                                     NameOf(dtype) + " in this library. Use a newer or the full one"};
  }
  return {};
}

}  // namespace rillet
