// A pool of threads that split a loop over outputs. A pool of one runs inline and starts no thread.
#pragma once
#include <cstdint>

namespace rillet {

class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  // Calls body(begin, end, thread) for pieces that cover [0, n) once, several a thread; a loop of at most `grain` items
  // is one piece. How the loop is cut must never change a result: kernels split outputs only.
  template <class F>
  void ParallelFor(int64_t n, int64_t grain, const F& body) {
    if (n <= 0) return;
    if (threads_ == 1) return body(int64_t{0}, n, 0);
    Dispatch(n, grain, [](const void* f, int64_t b, int64_t e, int t) { (*static_cast<const F*>(f))(b, e, t); }, &body);
  }

 private:
  using Body = void (*)(const void* context, int64_t begin, int64_t end, int thread);
  void Dispatch(int64_t n, int64_t grain, Body body, const void* context);

  int threads_;
  struct Shared;
  Shared* shared_ = nullptr;
};

}  // namespace rillet
