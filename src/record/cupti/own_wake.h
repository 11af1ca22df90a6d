// A condition variable of one of the recorder's own threads, which a forked child's copy leaves alone: destroying it
// there waits for a thread that exists in the parent only.
#pragma once

#include <condition_variable>
#include <memory>

namespace firelane::cupti {

class OwnWake {
 public:
  std::condition_variable& operator*() const noexcept { return *wake_; }
  std::condition_variable* operator->() const noexcept { return wake_.get(); }
  void leave_to_parent() noexcept { static_cast<void>(wake_.release()); }

 private:
  std::unique_ptr<std::condition_variable> wake_ = std::make_unique<std::condition_variable>();
};

}  // namespace firelane::cupti
