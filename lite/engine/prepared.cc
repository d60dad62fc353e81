#include "prepared.h"

#include <cstring>
#include <string_view>
#include <unordered_map>

namespace rillet {
namespace {

// The largest result that is computed while preparing: shape arithmetic, not data.
constexpr int64_t kMaxFoldedElements = 4096;

Status CopyInput(const Run& r) {
  std::memcpy(r.out(0).data, r.in(0).data, r.in(0).bytes());
  return Status::kOk;
}

bool IsInt(DType t) { return t == DType::kI32 || t == DType::kI64; }

void* AllocateState(void* blocks, size_t bytes) { return static_cast<Blocks*>(blocks)->Allocate(bytes); }

}  // namespace

Result Prepared::Make(const PrepareOptions& options, std::unique_ptr<Prepared>* prepared) {
  std::unique_ptr<Prepared> p(new Prepared(options));
  RILLET_TRY(p->CheckDimensionNames());
  RILLET_TRY(p->InferAll());
  RILLET_TRY(p->PlaceAll());
  p->MakeSteps();
  *prepared = std::move(p);
  return {};
}

// Dimensions of inputs and variables that share a name must be equal.
Result Prepared::CheckDimensionNames() const {
  std::unordered_map<std::string_view, size_t> first;
  for (size_t t = 0; t < model_.tensors.size(); ++t) {
    const TensorInfo& info = model_.tensors[t];
    if (info.kind != Kind::kInput && info.kind != Kind::kVariable) continue;
    for (int32_t d = 0; d < info.rank; ++d) {
      if (!info.dim_names[d]) continue;
      const auto [it, is_new] = first.emplace(info.dim_names[d], t * kMaxRank + static_cast<size_t>(d));
      const size_t other = it->second / kMaxRank;
      const int64_t got = options_.shapes[t].dims[d], expected = options_.shapes[other].dims[it->second % kMaxRank];
      if (!is_new && got != expected)
        return Refuse(RILLET_BAD_ARGUMENT, "dimension '%.60s' of '%.100s': got %lld, expected %lld as in '%.100s'",
                      info.dim_names[d], info.name, static_cast<long long>(got), static_cast<long long>(expected),
                      model_.tensors[other].name);
    }
  }
  return {};
}

Result Prepared::InferAll() {
  values.resize(model_.tensors.size());
  for (size_t t = 0; t < values.size(); ++t) {
    const TensorInfo& info = model_.tensors[t];
    Tensor& v = values[t];
    v.dtype = info.dtype;
    v.quant = info.quant;
    v.present = true;
    v.constant = info.kind == Kind::kConstant;
    v.variable = info.kind == Kind::kVariable;
    v.data = info.data;
    v.rank = options_.shapes[t].rank;
    std::memcpy(v.dims, options_.shapes[t].dims, sizeof(v.dims));
  }
  size_t count = 0;
  for (const OperationInfo& o : model_.operations) count += static_cast<size_t>(o.inputs.size + o.outputs.size);
  operands_.resize(count);
  nodes_.resize(model_.operations.size());
  Tensor* next = operands_.data();
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const OperationInfo& o = model_.operations[i];
    nodes_[i] = {next, next + o.inputs.size, nullptr, false};
    next += o.inputs.size + o.outputs.size;
    RILLET_TRY(InferOne(i));
  }
  return {};
}

Result Prepared::InferOne(size_t i) {
  const OperationInfo& o = model_.operations[i];
  Node& node = nodes_[i];
  for (int64_t k = 0; k < o.inputs.size; ++k)
    if (o.inputs[k] >= 0) node.inputs[k] = values[static_cast<size_t>(o.inputs[k])];
  for (int64_t k = 0; k < o.outputs.size; ++k) {
    node.outputs[k] = values[static_cast<size_t>(o.outputs[k])];
    node.outputs[k].rank = -1;
  }
  Prepare p;
  p.inputs = {node.inputs, o.inputs.size};
  p.outputs = node.outputs;
  p.output_count = o.outputs.size;
  p.threads = options_.pool->threads();
  p.attrs = {o.attrs.data(), static_cast<int64_t>(o.attrs.size())};
  p.message = options_.message;
  p.memory = &state_;
  p.allocate = AllocateState;
  options_.message->text[0] = 0;
  Status status = o.kernel->kernel->prepare(p);
  if (status == Status::kOk) status = p.status();
  if (status == Status::kOutOfMemory)
    return {RILLET_OUT_OF_MEMORY,
            Located(o) + options_.message->text + "; the limit is " + std::to_string(MemoryLimit())};
  if (status != Status::kOk) return {RILLET_BAD_OPERATION, Located(o) + options_.message->text};
  node.state = p.state;
  RILLET_TRY(CheckOutputs(o, node));
  for (int64_t k = 0; k < o.outputs.size; ++k) values[static_cast<size_t>(o.outputs[k])] = node.outputs[k];
  if (CanFold(o, node)) return Fold(i, p.workspace_bytes);
  if (p.workspace_bytes > workspace_bytes_) workspace_bytes_ = p.workspace_bytes;
  return {};
}

// What the kernel found must be what the file says, where the file says something.
Result Prepared::CheckOutputs(const OperationInfo& o, const Node& node) const {
  for (int64_t k = 0; k < o.outputs.size; ++k) {
    const TensorInfo& said = model_.tensors[static_cast<size_t>(o.outputs[k])];
    const Tensor& got = node.outputs[k];
    bool same = got.rank == said.rank;
    for (int32_t d = 0; same && d < said.rank; ++d) same = said.dims[d] < 0 || said.dims[d] == got.dims[d];
    if (same) continue;
    if (got.rank < 0) return {RILLET_BAD_OPERATION, Located(o) + "too many outputs"};
    return {RILLET_BAD_OPERATION, Located(o) + "output " + std::to_string(k) + " '" + said.name + "': got shape " +
                                      ShapeText(got.dims, got.rank) + ", expected " + ShapeText(said.dims, said.rank)};
  }
  return {};
}

// These need only the shape of their input; other integer ops are computed now if all they read is constant.
bool Prepared::CanFold(const OperationInfo& o, const Node& node) const {
  if (o.outputs.size == 0 || o.inputs.size == 0) return false;
  for (int64_t k = 0; k < o.outputs.size; ++k)
    if (!IsInt(node.outputs[k].dtype) || node.outputs[k].size() > kMaxFoldedElements || node.outputs[k].quant.count)
      return false;
  for (const char* op : {"Shape", "Size", "Rank"})
    if (!std::strcmp(o.op, op)) return true;
  for (int64_t k = 0; k < o.inputs.size; ++k)
    if (node.inputs[k].present && !(node.inputs[k].constant && IsInt(node.inputs[k].dtype))) return false;
  return true;
}

Result Prepared::Fold(size_t i, size_t workspace_bytes) {
  const OperationInfo& o = model_.operations[i];
  Node& node = nodes_[i];
  for (int64_t k = 0; k < o.outputs.size; ++k) {
    node.outputs[k].data = state_.Allocate(node.outputs[k].bytes());
    if (!node.outputs[k].data) return {RILLET_OUT_OF_MEMORY, Located(o) + "out of memory"};
  }
  Run run = RunOf(i);
  run.workspace = state_.Allocate(workspace_bytes);
  if (!run.workspace) return {RILLET_OUT_OF_MEMORY, Located(o) + "out of memory"};
  const bool alias = (o.kernel->flags & kAlias) != 0;
  if ((alias ? CopyInput : o.kernel->kernel->run)(run) != Status::kOk)
    return {RILLET_BAD_DATA, Located(o) + options_.message->text};
  for (int64_t k = 0; k < o.outputs.size; ++k) {
    node.outputs[k].constant = true;
    values[static_cast<size_t>(o.outputs[k])] = node.outputs[k];
  }
  node.folded = true;
  return {};
}

Run Prepared::RunOf(size_t i) const {
  const OperationInfo& o = model_.operations[i];
  Run run;
  run.inputs = {nodes_[i].inputs, o.inputs.size};
  run.outputs = nodes_[i].outputs;
  run.output_count = o.outputs.size;
  run.state_ptr = nodes_[i].state;
  run.workspace = workspace_;
  run.pool = options_.pool;
  run.message = options_.message;
  return run;
}

Result Prepared::PlaceAll() {
  size_t total = 0;  // an upper bound of the arena, so that the planner's sums cannot overflow
  for (const Tensor& v : values)
    if (__builtin_add_overflow(total, v.bytes() + 64, &total))
      return Refuse(RILLET_OUT_OF_MEMORY, "the values are too large");
  plan_ = MakePlan(model_, values, options_.keep_all);
  const size_t used = state_.bytes();
  const size_t needed = plan_.bytes + workspace_bytes_;
  auto* arena = static_cast<char*>(
      needed < plan_.bytes || needed + used > MemoryLimit() ? nullptr : scratch_.Allocate(plan_.bytes));
  workspace_ = arena ? scratch_.Allocate(workspace_bytes_) : nullptr;
  if (!workspace_)
    return Refuse(RILLET_OUT_OF_MEMORY,
                  "needs an arena of %zu bytes, %zu of workspace and %zu of prepared weights; the limit is %zu",
                  plan_.bytes, workspace_bytes_, used, MemoryLimit());
  for (size_t t = 0; t < values.size(); ++t) {
    if (values[t].constant) continue;
    const auto root = static_cast<size_t>(plan_.root[t]);
    if (values[root].constant) values[t].data = values[root].data;
    else if (model_.tensors[root].kind == Kind::kVariable) values[t].data = nullptr;  // until it is bound
    else values[t].data = arena + plan_.offset[root];
  }
  return {};
}

void Prepared::MakeSteps() {
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const OperationInfo& o = model_.operations[i];
    if (nodes_[i].folded) continue;
    for (int64_t k = 0; k < o.inputs.size; ++k)
      if (o.inputs[k] >= 0) nodes_[i].inputs[k] = values[static_cast<size_t>(o.inputs[k])];
    for (int64_t k = 0; k < o.outputs.size; ++k) nodes_[i].outputs[k] = values[static_cast<size_t>(o.outputs[k])];
    const bool alias = (o.kernel->flags & kAlias) != 0;
    if (alias && !plan_.copy[i]) continue;
    steps.push_back({alias ? CopyInput : o.kernel->kernel->run, RunOf(i), static_cast<int32_t>(i)});
  }
}

void Prepared::BindVariable(int32_t tensor, void* data) {
  if (values[static_cast<size_t>(tensor)].data == data) return;
  for (size_t t = 0; t < values.size(); ++t)
    if (plan_.root[t] == tensor && !values[t].constant) values[t].data = data;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const OperationInfo& o = model_.operations[i];
    for (int64_t k = 0; k < o.inputs.size; ++k)
      if (o.inputs[k] >= 0 && plan_.root[static_cast<size_t>(o.inputs[k])] == tensor) nodes_[i].inputs[k].data = data;
  }
}

}  // namespace rillet
