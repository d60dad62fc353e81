// A loop is cut into a few pieces a thread, which the caller and the workers claim one after the other: a worker that
// the system keeps from running holds nobody up. A worker without work looks for the next loop for a moment, because
// the loops of a run follow one another within microseconds and waking a sleeper takes longer than most of them; then
// it sleeps. Between runs nothing spins.
#include "thread_pool.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rillet {
namespace {

constexpr int kPiecesPerThread = 4;
constexpr std::chrono::microseconds kPatience{50};

// Which thread of a pool runs a loop here; -1 outside. A loop within a loop runs inline, as this thread.
thread_local int t_thread = -1;

void Pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Looks for up to kPatience whether `ready` has become true.
template <class Ready>
bool Watch(const Ready& ready) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  do {
    for (int i = 0; i < 16; ++i) {
      if (ready()) return true;
      Pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

}  // namespace

struct ThreadPool::Shared {
  struct Worker {
    Shared* shared;
    int number;
    pthread_t thread;
  };
  std::vector<Worker> workers;
  const pid_t process = getpid();  // a fork takes the memory along, and not the workers
  // The number of the current loop above, how many of its pieces nobody has claimed below: one word, so that a claim
  // can never reach into another loop.
  std::atomic<uint64_t> state{0};
  std::atomic<int> unfinished{0};  // pieces of the current loop
  std::atomic<int> sleepers{0};
  std::atomic<bool> caller_sleeps{false}, stop{false};
  std::mutex mutex;              // of the two sleeps
  std::condition_variable work;  // a new loop, or the end
  std::condition_variable done;  // unfinished has become 0
  // The current loop; written while nobody holds a claim.
  Body body = nullptr;
  const void* context = nullptr;
  int64_t n = 0, step = 0;
  uint32_t pieces = 0;

  static uint32_t Unclaimed(uint64_t state) { return static_cast<uint32_t>(state); }

  // Runs pieces of the current loop until all are claimed; returns the state that it last saw.
  uint64_t RunPieces(int thread) {
    uint64_t seen = state.load(std::memory_order_acquire);
    while (Unclaimed(seen) != 0) {
      if (!state.compare_exchange_weak(seen, seen - 1, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
      const int64_t begin = static_cast<int64_t>(pieces - Unclaimed(seen)) * step;
      body(context, begin, begin + step < n ? begin + step : n, thread);
      Finish();
      seen = state.load(std::memory_order_acquire);
    }
    return seen;
  }

  void Finish() {
    if (unfinished.fetch_sub(1) != 1 || !caller_sleeps.load()) return;
    std::lock_guard<std::mutex> lock(mutex);
    done.notify_one();
  }

  void Work(int thread) {
    t_thread = thread;
    while (!stop) {
      const uint64_t seen = RunPieces(thread);
      const auto changed = [&] { return stop || state.load() != seen; };
      if (Watch(changed)) continue;
      std::unique_lock<std::mutex> lock(mutex);
      ++sleepers;
      work.wait(lock, changed);
      --sleepers;
    }
  }

  void Begin(Body f, const void* c, int64_t count, int64_t piece) {
    body = f, context = c, n = count, step = piece;
    pieces = static_cast<uint32_t>((n + step - 1) / step);
    unfinished.store(static_cast<int>(pieces));
    state.store(((state.load() >> 32) + 1) << 32 | pieces);
    if (sleepers.load() != 0) {
      std::lock_guard<std::mutex> lock(mutex);
      work.notify_all();
    }
  }

  void Wait() {
    const auto finished = [&] { return unfinished.load() == 0; };
    if (Watch(finished)) return;
    std::unique_lock<std::mutex> lock(mutex);
    caller_sleeps = true;
    done.wait(lock, finished);
    caller_sleeps = false;
  }
};

ThreadPool::ThreadPool(int threads) : threads_(threads < 1 ? 1 : threads) {
  if (threads_ == 1) return;
  shared_ = new Shared;
  shared_->workers.reserve(static_cast<size_t>(threads_));  // workers hold pointers into it
  for (int i = 1; i < threads_; ++i) {
    shared_->workers.push_back({shared_, i, {}});
    const auto start = [](void* p) -> void* {
      const auto* w = static_cast<const Shared::Worker*>(p);
      w->shared->Work(w->number);
      return nullptr;
    };
    Shared::Worker& w = shared_->workers.back();
    if (pthread_create(&w.thread, nullptr, start, &w) == 0) continue;
    // The system has no more threads to give: those there are claim all the pieces, with the same results.
    shared_->workers.pop_back();
    break;
  }
}

ThreadPool::~ThreadPool() {
  if (!shared_ || shared_->process != getpid()) return;  // in a forked child there is nobody to wait for
  {
    std::lock_guard<std::mutex> lock(shared_->mutex);
    shared_->stop = true;
  }
  shared_->work.notify_all();
  for (const Shared::Worker& w : shared_->workers) pthread_join(w.thread, nullptr);
  delete shared_;
}

void ThreadPool::Dispatch(int64_t n, int64_t grain, Body body, const void* context) {
  if (grain < 1) grain = 1;
  int64_t pieces = (n + grain - 1) / grain;
  if (pieces > threads_ * kPiecesPerThread) pieces = threads_ * kPiecesPerThread;
  if (t_thread >= 0 || pieces == 1) return body(context, 0, n, t_thread < 0 ? 0 : t_thread);
  Shared& s = *shared_;
  s.Begin(body, context, n, (n + pieces - 1) / pieces);
  t_thread = 0;
  s.RunPieces(0);
  t_thread = -1;
  s.Wait();
}

}  // namespace rillet
