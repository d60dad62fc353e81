// Greedy by size: the largest buffer first, each at the lowest offset that is free while it lives.
#include "plan.h"

#include <algorithm>

namespace rillet {
namespace {

constexpr int32_t kBefore = -1;

struct Buffer {
  int32_t root;
  int32_t first, last;  // operations during which it holds something
  size_t size;
  size_t offset;
};

size_t Rounded(size_t bytes) { return (bytes + 63) / 64 * 64 + (bytes == 0 ? 64 : 0); }

class Planner {
 public:
  Planner(const Model& model, const std::vector<Tensor>& values, bool keep_all)
      : model_(model), values_(values), keep_all_(keep_all), end_(static_cast<int32_t>(model.operations.size())) {
    const size_t n = values.size();
    plan_.root.resize(n);
    plan_.offset.assign(n, 0);
    plan_.copy.assign(model.operations.size(), 0);
    for (size_t t = 0; t < n; ++t) plan_.root[t] = static_cast<int32_t>(t);
    first_.assign(n, kBefore);
    last_.assign(n, kBefore);
  }

  Plan Make() {
    FindLives();
    group_last_ = last_;
    for (int32_t i = 0; i < end_; ++i) Share(i);
    Place();
    return std::move(plan_);
  }

 private:
  // The last operation that reads each value; an output is read after the end.
  void FindLives() {
    for (int32_t i = 0; i < end_; ++i) {
      const OperationInfo& o = model_.operations[static_cast<size_t>(i)];
      for (int32_t t : o.inputs)
        if (t >= 0) last_[static_cast<size_t>(t)] = i;
      for (int32_t t : o.outputs) first_[static_cast<size_t>(t)] = last_[static_cast<size_t>(t)] = i;
    }
    for (int32_t t : model_.inputs) last_[static_cast<size_t>(t)] = end_;
    for (int32_t t : model_.outputs) last_[static_cast<size_t>(t)] = end_;
    if (keep_all_) last_.assign(last_.size(), end_);
  }

  void Share(int32_t i) {
    const OperationInfo& o = model_.operations[static_cast<size_t>(i)];
    const uint32_t flags = o.kernel->flags;
    if (!(flags & (kAlias | kInPlace)) || o.inputs.size == 0 || o.outputs.size == 0 || o.inputs[0] < 0) return;
    const int32_t out = o.outputs[0], root = plan_.root[static_cast<size_t>(o.inputs[0])];
    if (values_[static_cast<size_t>(out)].constant) return;
    const bool may = flags & kAlias ? MayAlias(i, out, root) : MayWriteInPlace(i, o, root);
    if (!may) {
      plan_.copy[static_cast<size_t>(i)] = flags & kAlias ? 1 : 0;
      return;
    }
    plan_.root[static_cast<size_t>(out)] = root;
    int32_t& group = group_last_[static_cast<size_t>(root)];
    group = std::max(group, last_[static_cast<size_t>(out)]);
  }

  bool MayAlias(int32_t i, int32_t out, int32_t root) const {
    const Kind kind = model_.tensors[static_cast<size_t>(root)].kind;
    const int32_t last = last_[static_cast<size_t>(out)];
    // The caller may write the next input while it still looks at the last output.
    if (kind == Kind::kInput) return last < end_ || keep_all_;
    return kind != Kind::kVariable || !IsWrittenBetween(root, i + 1, last);
  }

  // Whether an operation in [from, to] may update the variable: any but those that only read it under another name.
  bool IsWrittenBetween(int32_t variable, int32_t from, int32_t to) const {
    for (int32_t i = from; i <= to && i < end_; ++i) {
      const OperationInfo& o = model_.operations[static_cast<size_t>(i)];
      if (o.kernel->flags & kAlias) continue;
      for (int32_t t : o.inputs)
        if (t == variable) return true;
    }
    return false;
  }

  bool MayWriteInPlace(int32_t i, const OperationInfo& o, int32_t root) const {
    const Tensor& in = values_[static_cast<size_t>(o.inputs[0])];
    const Tensor& out = values_[static_cast<size_t>(o.outputs[0])];
    if (keep_all_ || model_.tensors[static_cast<size_t>(root)].kind != Kind::kTemporary) return false;
    if (values_[static_cast<size_t>(root)].constant || in.bytes() != out.bytes()) return false;
    if (group_last_[static_cast<size_t>(root)] != i) return false;
    for (int64_t k = 1; k < o.inputs.size; ++k)
      if (o.inputs[k] >= 0 && plan_.root[static_cast<size_t>(o.inputs[k])] == root) return false;
    return true;
  }

  void Place() {
    std::vector<Buffer> buffers;
    for (size_t t = 0; t < values_.size(); ++t) {
      const Kind kind = model_.tensors[t].kind;
      if (plan_.root[t] != static_cast<int32_t>(t) || values_[t].constant || kind == Kind::kVariable) continue;
      if (kind == Kind::kTemporary && first_[t] == kBefore) continue;  // nothing writes it, so nothing reads it
      buffers.push_back({static_cast<int32_t>(t), first_[t], group_last_[t], Rounded(values_[t].bytes()), 0});
    }
    std::stable_sort(buffers.begin(), buffers.end(), [](const Buffer& a, const Buffer& b) { return a.size > b.size; });
    std::vector<const Buffer*> placed;  // by offset
    for (Buffer& b : buffers) {
      size_t offset = 0;
      for (const Buffer* other : placed) {
        if (other->last < b.first || b.last < other->first) continue;
        if (offset + b.size <= other->offset) break;
        offset = std::max(offset, other->offset + other->size);
      }
      b.offset = plan_.offset[static_cast<size_t>(b.root)] = offset;
      plan_.bytes = std::max(plan_.bytes, offset + b.size);
      placed.insert(std::upper_bound(placed.begin(), placed.end(), &b,
                                     [](const Buffer* x, const Buffer* y) { return x->offset < y->offset; }),
                    &b);
    }
    plan_.bytes += kSlack;
  }

  const Model& model_;
  const std::vector<Tensor>& values_;
  const bool keep_all_;
  const int32_t end_;
  Plan plan_;
  std::vector<int32_t> first_, last_;
  std::vector<int32_t> group_last_;  // of each root: the last use of any value in its memory
};

}  // namespace

Plan MakePlan(const Model& model, const std::vector<Tensor>& values, bool keep_all) {
  return Planner(model, values, keep_all).Make();
}

}  // namespace rillet
