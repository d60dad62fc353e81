// A model made ready for one set of shapes: kernels prepared, memory laid out, a straight list of steps to run.
#pragma once
#include <memory>
#include <vector>

#include "kernel.h"
#include "memory.h"
#include "model.h"
#include "plan.h"

namespace rillet {

struct Step {
  Status (*run)(const Run&);
  Run args;
  int32_t operation;
};

struct Shape {
  int32_t rank = 0;
  int64_t dims[kMaxRank] = {};
};

struct PrepareOptions {
  const Model* model;
  std::vector<Shape> shapes;  // of each tensor; those of inputs and variables are what counts
  ThreadPool* pool;
  Message* message;  // where kernels write why they failed
  bool keep_all;
};

class Prepared {
 public:
  static Result Make(const PrepareOptions& options, std::unique_ptr<Prepared>* prepared);

  std::vector<Tensor> values;  // of each tensor, with its data
  std::vector<Step> steps;
  void BindVariable(int32_t tensor, void* data);
  size_t arena_bytes() const { return plan_.bytes; }
  size_t state_bytes() const { return state_.bytes(); }
  size_t workspace_bytes() const { return workspace_bytes_; }

 private:
  struct Node {
    Tensor* inputs;
    Tensor* outputs;
    void* state;
    bool folded;  // computed while preparing
  };

  explicit Prepared(const PrepareOptions& options) : options_(options), model_(*options.model) {}
  Result InferAll();
  Result InferOne(size_t i);
  Result CheckOutputs(const OperationInfo& o, const Node& node) const;
  bool CanFold(const OperationInfo& o, const Node& node) const;
  Result Fold(size_t i, size_t workspace_bytes);
  Result CheckDimensionNames() const;
  Result PlaceAll();
  void MakeSteps();
  Run RunOf(size_t i) const;

  const PrepareOptions& options_;  // only while Make runs
  const Model& model_;
  Plan plan_;
  std::vector<Tensor> operands_;  // inputs, then outputs, of each operation in turn
  std::vector<Node> nodes_;
  Blocks state_, scratch_;
  void* workspace_ = nullptr;
  size_t workspace_bytes_ = 0;
};

}  // namespace rillet
