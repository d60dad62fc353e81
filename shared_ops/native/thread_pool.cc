// A loop is cut into at most one piece a thread; the caller works on the first. Idle threads sleep: they never spin.
#include "thread_pool.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace rillet {

struct ThreadPool::Shared {
  std::mutex mutex;
  std::condition_variable work;  // a new loop, or the end
  std::condition_variable done;
  std::vector<std::thread> workers;
  uint64_t loop = 0;  // number of the current loop
  int pieces = 0;
  int running = 0;  // workers that have not finished the current loop
  bool stop = false;
  Body body = nullptr;
  const void* context = nullptr;
  int64_t n = 0, step = 0;

  void Piece(int piece) const {
    const int64_t begin = piece * step;
    body(context, begin, begin + step < n ? begin + step : n, piece);
  }

  void Work(int piece) {
    uint64_t seen = 0;
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      work.wait(lock, [&] { return stop || (loop != seen && piece < pieces); });
      if (stop) return;
      seen = loop;
      lock.unlock();
      Piece(piece);
      lock.lock();
      if (--running == 0) done.notify_one();
    }
  }
};

namespace {
thread_local bool t_inside = false;  // a loop within a loop runs inline
}

ThreadPool::ThreadPool(int threads) : threads_(threads < 1 ? 1 : threads) {
  if (threads_ == 1) return;
  shared_ = new Shared;
  for (int i = 1; i < threads_; ++i)
    shared_->workers.emplace_back([shared = shared_, i] {
      t_inside = true;
      shared->Work(i);
    });
}

ThreadPool::~ThreadPool() {
  if (!shared_) return;
  {
    std::lock_guard<std::mutex> lock(shared_->mutex);
    shared_->stop = true;
  }
  shared_->work.notify_all();
  for (std::thread& t : shared_->workers) t.join();
  delete shared_;
}

void ThreadPool::Dispatch(int64_t n, int64_t grain, Body body, const void* context) {
  if (grain < 1) grain = 1;
  int64_t pieces = (n + grain - 1) / grain;
  if (pieces > threads_) pieces = threads_;
  if (t_inside || pieces == 1) return body(context, 0, n, 0);
  Shared& s = *shared_;
  {
    std::lock_guard<std::mutex> lock(s.mutex);
    s.step = (n + pieces - 1) / pieces;
    s.pieces = static_cast<int>((n + s.step - 1) / s.step);
    s.body = body, s.context = context, s.n = n;
    s.running = s.pieces - 1;
    ++s.loop;
  }
  if (s.pieces == 2 && threads_ == 2) s.work.notify_one();
  else s.work.notify_all();
  t_inside = true;
  s.Piece(0);
  t_inside = false;
  std::unique_lock<std::mutex> lock(s.mutex);
  s.done.wait(lock, [&] { return s.running == 0; });
}

}  // namespace rillet
