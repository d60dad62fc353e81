// rillet.h over Model and Context: checks the caller's arguments, keeps the text of the last error.
#include <cstdio>
#include <cstring>

#include "context.h"
#include "isa/isa.h"

using rillet::Result;

struct rillet_model {
  std::unique_ptr<rillet::Model> it;
};
struct rillet_context {
  std::unique_ptr<rillet::Context> it;
};

namespace {

thread_local char t_error[1024];

rillet_status Report(const Result& r) {
  if (!r.ok()) std::snprintf(t_error, sizeof(t_error), "%s", r.text.c_str());
  return r.status;
}

rillet_status BadArgument(const char* what) { return Report({RILLET_BAD_ARGUMENT, what}); }

bool InRange(int32_t i, int64_t count) { return i >= 0 && i < count; }

void Describe(const rillet_context* c, int32_t tensor, rillet_tensor_info* info) {
  const rillet::Tensor t = c->it->Value(tensor);
  *info = {};
  info->name = c->it->model().tensors[static_cast<size_t>(tensor)].name;
  info->dtype = static_cast<rillet_dtype>(t.dtype);
  info->rank = t.rank;
  bool known = true;
  for (int32_t d = 0; d < t.rank; ++d) known &= (info->dims[d] = t.dims[d]) >= 0;
  info->quantized = t.quant.count > 0;
  info->scale = info->quantized ? t.quant.scale[0] : 0.0f;
  info->zero_point = t.quant.zero_point;
  info->bytes = known ? t.bytes() : 0;
}

}  // namespace

extern "C" {

const char* rillet_version(void) { return RILLET_VERSION; }
const char* rillet_error(void) { return t_error; }

const char* rillet_status_name(rillet_status status) {
  static constexpr const char* kNames[] = {"OK",           "FILE_NOT_FOUND", "BAD_MAGIC",  "BAD_VERSION",
                                           "TRUNCATED",    "BAD_CHECKSUM",   "MALFORMED",  "BAD_REFERENCE",
                                           "BAD_TENSOR",   "BAD_ORDER",      "UNKNOWN_OP", "BAD_OPERATION",
                                           "BAD_ARGUMENT", "OUT_OF_MEMORY",  "BAD_DATA"};
  return InRange(status, sizeof(kNames) / sizeof(kNames[0])) ? kNames[status] : "UNKNOWN";
}

rillet_status rillet_model_load_file(const char* path, rillet_model** model) {
  if (!path || !model) return BadArgument("path and model must not be null");
  std::unique_ptr<rillet::Model> m;
  if (Result r = rillet::Model::FromFile(path, &m); !r.ok()) return Report(r);
  *model = new rillet_model{std::move(m)};
  return RILLET_OK;
}

rillet_status rillet_model_load_memory(const void* bytes, size_t size, rillet_model** model) {
  if (!bytes || !model) return BadArgument("bytes and model must not be null");
  std::unique_ptr<rillet::Model> m;
  if (Result r = rillet::Model::FromMemory(bytes, size, &m); !r.ok()) return Report(r);
  *model = new rillet_model{std::move(m)};
  return RILLET_OK;
}

void rillet_model_free(rillet_model* model) { delete model; }

int32_t rillet_model_metadata_count(const rillet_model* model) {
  return model ? static_cast<int32_t>(model->it->metadata.size()) : 0;
}

rillet_status rillet_model_metadata(const rillet_model* model, int32_t i, const char** key, const char** value) {
  if (!model || !key || !value || !InRange(i, rillet_model_metadata_count(model)))
    return BadArgument("no such metadata");
  *key = model->it->metadata[static_cast<size_t>(i)].first;
  *value = model->it->metadata[static_cast<size_t>(i)].second;
  return RILLET_OK;
}

rillet_status rillet_context_new(const rillet_model* model, int32_t threads, rillet_context** context) {
  if (!model || !context) return BadArgument("model and context must not be null");
  if (threads < 1 || threads > 1024) return BadArgument("threads must be between 1 and 1024");
  std::unique_ptr<rillet::Context> c;
  if (Result r = rillet::Context::Make(*model->it, threads, &c); !r.ok()) return Report(r);
  *context = new rillet_context{std::move(c)};
  return RILLET_OK;
}

void rillet_context_free(rillet_context* context) { delete context; }

int32_t rillet_input_count(const rillet_context* c) { return c ? static_cast<int32_t>(c->it->model().inputs.size) : 0; }
int32_t rillet_output_count(const rillet_context* c) {
  return c ? static_cast<int32_t>(c->it->model().outputs.size) : 0;
}
int32_t rillet_variable_count(const rillet_context* c) {
  return c ? static_cast<int32_t>(c->it->model().variables.size()) : 0;
}
int32_t rillet_tensor_count(const rillet_context* c) {
  return c ? static_cast<int32_t>(c->it->model().tensors.size()) : 0;
}

rillet_status rillet_input_info(const rillet_context* c, int32_t i, rillet_tensor_info* info) {
  if (!info || !InRange(i, rillet_input_count(c))) return BadArgument("no such input");
  Describe(c, c->it->model().inputs[i], info);
  return RILLET_OK;
}

rillet_status rillet_output_info(const rillet_context* c, int32_t i, rillet_tensor_info* info) {
  if (!info || !InRange(i, rillet_output_count(c))) return BadArgument("no such output");
  Describe(c, c->it->model().outputs[i], info);
  return RILLET_OK;
}

rillet_status rillet_variable_info(const rillet_context* c, int32_t i, rillet_tensor_info* info) {
  if (!info || !InRange(i, rillet_variable_count(c))) return BadArgument("no such variable");
  Describe(c, c->it->model().variables[static_cast<size_t>(i)], info);
  return RILLET_OK;
}

rillet_status rillet_resize(rillet_context* c, int32_t i, const int64_t* dims, int32_t rank) {
  if (!InRange(i, rillet_input_count(c)) || (!dims && rank)) return BadArgument("no such input, or no dims");
  return Report(c->it->Resize(i, dims, rank));
}

rillet_status rillet_bind_variable(rillet_context* c, int32_t i, void* data, size_t bytes, const int64_t* dims,
                                   int32_t rank) {
  if (!InRange(i, rillet_variable_count(c)) || (!dims && rank)) return BadArgument("no such variable, or no dims");
  return Report(c->it->BindVariable(i, data, bytes, dims, rank));
}

rillet_status rillet_prepare(rillet_context* c) { return c ? Report(c->it->PrepareNow()) : BadArgument("no context"); }

rillet_status rillet_run(rillet_context* c) { return c ? Report(c->it->Run()) : BadArgument("no context"); }

void* rillet_input_data(rillet_context* c, int32_t i) {
  if (!InRange(i, rillet_input_count(c))) return (void)BadArgument("no such input"), nullptr;
  if (Result r = c->it->PrepareNow(); !r.ok()) return (void)Report(r), nullptr;
  return c->it->Value(c->it->model().inputs[i]).data;
}

const void* rillet_output_data(rillet_context* c, int32_t i) {
  if (!InRange(i, rillet_output_count(c))) return (void)BadArgument("no such output"), nullptr;
  if (Result r = c->it->PrepareNow(); !r.ok()) return (void)Report(r), nullptr;
  return c->it->Value(c->it->model().outputs[i]).data;
}

rillet_status rillet_keep_all(rillet_context* c, int32_t keep) {
  return c ? Report(c->it->KeepAll(keep != 0)) : BadArgument("no context");
}

rillet_status rillet_tensor(const rillet_context* c, int32_t i, rillet_tensor_info* info, const void** data) {
  if (!info || !data || !InRange(i, rillet_tensor_count(c))) return BadArgument("no such tensor");
  Describe(c, i, info);
  *data = c->it->Value(i).data;
  return RILLET_OK;
}

rillet_status rillet_profile(rillet_context* c, int32_t on) {
  if (!c) return BadArgument("no context");
  c->it->Profile(on != 0);
  return RILLET_OK;
}

int32_t rillet_profile_count(const rillet_context* c) { return c ? static_cast<int32_t>(c->it->times().size()) : 0; }

rillet_status rillet_profile_get(const rillet_context* c, int32_t i, rillet_profile_entry* entry) {
  if (!entry || !InRange(i, rillet_profile_count(c))) return BadArgument("no such operation");
  const rillet::OperationInfo& o = c->it->model().operations[static_cast<size_t>(i)];
  const rillet::Context::Time& t = c->it->times()[static_cast<size_t>(i)];
  *entry = {o.op, o.name, o.kernel->dtype, t.nanoseconds, t.runs};
  return RILLET_OK;
}

rillet_status rillet_memory(const rillet_context* c, size_t* arena, size_t* prepared, size_t* workspace) {
  if (!c || !arena || !prepared || !workspace) return BadArgument("null argument");
  const rillet::Prepared* p = c->it->prepared();
  *arena = p ? p->arena_bytes() : 0;
  *prepared = p ? p->state_bytes() : 0;
  *workspace = p ? p->workspace_bytes() : 0;
  return RILLET_OK;
}

void rillet_set_memory_limit(size_t bytes) { rillet::SetMemoryLimit(bytes); }

int32_t rillet_kernel_count(void) { return static_cast<int32_t>(rillet::AllKernels().size); }

rillet_status rillet_kernel_info(int32_t i, const char** op, int32_t* version, const char** dtype, uint32_t* flags) {
  if (!op || !version || !dtype || !flags || !InRange(i, rillet_kernel_count())) return BadArgument("no such kernel");
  const rillet::KernelEntry& e = rillet::AllKernels()[i];
  *op = e.op, *version = e.version, *dtype = e.dtype, *flags = e.flags;
  return RILLET_OK;
}

const char* rillet_isa(void) { return rillet::NameOf(rillet::CurrentIsa()); }

int32_t rillet_isa_available(const char* name) {
  for (int i = 0; name && i < rillet::kIsaCount; ++i)
    if (!std::strcmp(name, rillet::NameOf(static_cast<rillet::Isa>(i))))
      return rillet::IsAvailable(static_cast<rillet::Isa>(i));
  return 0;
}

rillet_status rillet_set_isa(const char* name) {
  for (int i = 0; name && i < rillet::kIsaCount; ++i)
    if (!std::strcmp(name, rillet::NameOf(static_cast<rillet::Isa>(i))) && rillet::SetIsa(static_cast<rillet::Isa>(i)))
      return RILLET_OK;
  return BadArgument("this build or this CPU does not have that instruction set");
}

}  // extern "C"
