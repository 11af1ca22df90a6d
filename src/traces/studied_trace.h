// A trace and what analyses say about it: each is computed when it is first asked for, once, and kept.
//
//   const StudiedTrace trace(std::move(model));
//   trace.get<analyze::study>().bound.limit
//   trace.get<analyze::ops>({.group_by_input_shape = true}).rows
//
// An analysis is a function of the model, or of the studied trace where it builds on other analyses, and of at most one
// struct or enum of options. Any number of threads may ask at once: those who come while it is computed wait for it.
//
// Results live as long as the trace, one for each set of options. So an analysis whose options are arbitrary numbers
// (analyze::cost_of) is called directly instead.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <typeindex>
#include <utility>
#include <vector>

#include "model/model.h"

namespace firelane {

// A value that is made when it is first asked for, once, whoever asks. A maker that throws has made nothing: the next
// one who asks tries again.
template <typename T>
class Once {
 public:
  template <typename Make>
  const T& get(const Make& make) {
    if (const T* ready = ready_.load(std::memory_order_acquire)) return *ready;
    const std::lock_guard lock(mutex_);
    if (!value_) {
      value_.emplace(make());
      ready_.store(&*value_, std::memory_order_release);
    }
    return *value_;
  }

 private:
  std::mutex mutex_;
  std::optional<T> value_;
  std::atomic<const T*> ready_ = nullptr;
};

struct NoOptions {
  bool operator==(const NoOptions&) const = default;
};

// What a function that can be remembered takes and gives.
template <typename Function>
struct AnalysisTraits;
template <typename R, typename S>
struct AnalysisTraits<R (*)(const S&)> {
  using Result = R;
  using Subject = S;
  using Options = NoOptions;
};
template <typename R, typename S, typename O>
struct AnalysisTraits<R (*)(const S&, const O&)> {
  using Result = R;
  using Subject = S;
  using Options = O;
};
template <typename R, typename S, typename O>
struct AnalysisTraits<R (*)(const S&, O)> {
  using Result = R;
  using Subject = S;
  using Options = O;
};

class StudiedTrace {
 public:
  explicit StudiedTrace(std::shared_ptr<const Model> model) : model_(std::move(model)) {}
  explicit StudiedTrace(Model model) : StudiedTrace(std::make_shared<const Model>(std::move(model))) {}
  StudiedTrace(const StudiedTrace&) = delete;
  StudiedTrace& operator=(const StudiedTrace&) = delete;

  const Model& model() const { return *model_; }
  const std::shared_ptr<const Model>& shared_model() const { return model_; }
  // The light steps of the same recording where it has some and they saw the device, else the trace itself. Whether
  // times and verdicts are taken from them, advise::timed_trace() decides: they may not tell what limits a program.
  const StudiedTrace& times() const {
    if (model_->light == nullptr || model_->light->device_slices.size() == 0) return *this;
    return *light_.get([&] { return std::make_unique<const StudiedTrace>(model_->light); });
  }

  template <auto kAnalysis, typename Traits = AnalysisTraits<decltype(kAnalysis)>>
  const typename Traits::Result& get(const typename Traits::Options& options = {}) const {
    Kept<kAnalysis>& kept = find_or_add<kAnalysis>(options);
    return kept.result.get([&] {
      const auto& subject = [&]() -> const typename Traits::Subject& {
        if constexpr (std::is_same_v<typename Traits::Subject, Model>) return *model_;
        if constexpr (std::is_same_v<typename Traits::Subject, StudiedTrace>) return *this;
      }();
      if constexpr (std::is_same_v<typename Traits::Options, NoOptions>) {
        return kAnalysis(subject);
      } else {
        return kAnalysis(subject, options);
      }
    });
  }

 private:
  struct AnyKept {
    virtual ~AnyKept() = default;
  };
  template <auto kAnalysis>
  struct Kept : AnyKept {
    using Traits = AnalysisTraits<decltype(kAnalysis)>;
    typename Traits::Options options;
    Once<typename Traits::Result> result;
  };

  template <auto kAnalysis>
  Kept<kAnalysis>& find_or_add(const typename Kept<kAnalysis>::Traits::Options& options) const {
    const std::lock_guard lock(mutex_);
    auto& all = kept_[typeid(Kept<kAnalysis>)];
    for (const std::unique_ptr<AnyKept>& each : all) {
      auto& kept = static_cast<Kept<kAnalysis>&>(*each);
      if (kept.options == options) return kept;
    }
    auto& added = static_cast<Kept<kAnalysis>&>(*all.emplace_back(std::make_unique<Kept<kAnalysis>>()));
    added.options = options;
    return added;
  }

  std::shared_ptr<const Model> model_;
  mutable Once<std::unique_ptr<const StudiedTrace>> light_;
  mutable std::mutex mutex_;  // of kept_, never held while something is computed
  mutable std::map<std::type_index, std::vector<std::unique_ptr<AnyKept>>> kept_;
};

}  // namespace firelane
