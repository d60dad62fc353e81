// Runs a model: holds shapes, bound variables, the prepared steps and their memory. Used by one thread at a time.
#pragma once
#include <memory>
#include <vector>

#include "prepared.h"

namespace rillet {

class Context {
 public:
  // Prepares at once if every shape is known, so that what is wrong with a model shows here and not in a run.
  static Result Make(const Model& model, int threads, std::unique_ptr<Context>* context);

  const Model& model() const { return model_; }
  Result Resize(int32_t input, const int64_t* dims, int32_t rank);
  Result BindVariable(int32_t variable, void* data, size_t bytes, const int64_t* dims, int32_t rank);
  Result PrepareNow();
  Result Run();

  // Type and, once prepared, shape and memory of a tensor.
  Tensor Value(int32_t tensor) const;
  Result KeepAll(bool keep);
  void Profile(bool on);

  struct Time {
    uint64_t nanoseconds = 0, runs = 0;
  };
  const std::vector<Time>& times() const { return times_; }
  const Prepared* prepared() const { return prepared_; }

 private:
  Context(const Model& model, int threads);
  bool ShapesAreKnown() const;
  Prepared* FindPrepared();
  Result CheckDims(const TensorInfo& info, const int64_t* dims, int32_t rank) const;
  Result SetShape(int32_t tensor, const int64_t* dims, int32_t rank);
  Result RunTimed();
  Result Failed(const Step& step);

  const Model& model_;
  ThreadPool pool_;
  Message message_;
  std::vector<Shape> shapes_;     // of each tensor
  std::vector<void*> variables_;  // bound memory
  // What was prepared for the shapes used last, so that alternating shapes (a last, smaller batch) cost nothing.
  struct Cached {
    std::vector<Shape> shapes;
    std::unique_ptr<Prepared> it;
    uint64_t used;
  };
  std::vector<Cached> cache_;
  Prepared* prepared_ = nullptr;  // of the shapes that are set now, or null
  uint64_t uses_ = 0;
  bool keep_all_ = false;
  bool timed_ = false;
  int32_t unbound_ = 0;      // variables without memory
  std::vector<Time> times_;  // of each operation
};

}  // namespace rillet
