// A long dimension is sorted completely although only a few of the best elements are used: topk finds these without
// sorting the rest.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "advise/evidence.h"
#include "advise/host_evidence.h"
#include "advise/rule.h"
#include "advise/text.h"
#include "analyze/ops/op_tensors.h"
#include "base/text.h"

namespace firelane::advise {

namespace {

constexpr int64_t kLongSort = 1024;  // elements that are sorted, at least
constexpr int64_t kFew = 8;          // so many times more than are used
constexpr size_t kLooksAhead = 40;   // operators, from the sort to the draw
constexpr size_t kLooksBack = 20;    // from a topk of the same to the sort

// For a sort that is not needed in full: what would work on few elements instead.
struct Wasted {
  Row sort = kNoRow;
  std::vector<Row> after;   // operators on all elements, up to the draw
  std::vector<Row> before;  // from a topk of the same to the sort: they are there for the sort alone
  int64_t length = 0;
  int64_t used = kNoNumber;  // elements; kNoNumber: as many as make up a share (nucleus sampling)
  bool has_topk = false;     // the few are known before it is sorted
};

class SortFinder {
 public:
  explicit SortFinder(const Context& context) : context_(context), model_(context.model) {}

  std::vector<Wasted> all() {
    std::vector<Wasted> out;
    const HostSlices& host = model_.host_slices;
    for (size_t lane = 0; lane < model_.lanes.size(); ++lane) {
      ops_.clear();
      for (Row row = model_.lanes.host_begin[lane]; row < model_.lanes.host_end[lane]; ++row) {
        if (is_outermost_op(host, row) && context_.in_window(host.start_ns[row])) ops_.push_back(row);
      }
      for (size_t i = 0; i < ops_.size(); ++i) {
        if (std::optional<Wasted> found = look_at(i)) out.push_back(std::move(*found));
      }
    }
    return out;
  }

 private:
  std::string_view name(size_t at) const { return model_.text(model_.host_slices.name[ops_[at]]); }
  std::vector<analyze::Dims> dims(size_t at) const {
    return analyze::parse_input_dims(input_dims_text(model_, ops_[at]));
  }
  // An input that is a number; kNoNumber: none, or not recorded.
  int64_t number(size_t at, size_t place) const {
    const Row detail = model_.op_detail(ops_[at]);
    if (detail == kNoRow || model_.op_details.concrete_inputs[detail] == kNoString) return kNoNumber;
    const auto texts = analyze::parse_input_strings(model_.text(model_.op_details.concrete_inputs[detail]));
    if (place >= texts.size()) return kNoNumber;
    const std::optional<analyze::Dims> value = analyze::parse_int_list(texts[place]);
    return value && value->size() == 1 ? value->front() : kNoNumber;
  }

  bool sorts_all(size_t at) const {
    if (name(at) == "aten::sort" || name(at) == "aten::argsort") return true;
    const std::vector<analyze::Dims> shapes = dims(at);
    return name(at) == "aten::topk" && !shapes.empty() && !shapes[0].empty() && 2 * number(at, 1) >= shapes[0].back();
  }

  // Elements that a slice or select of the sorted dimension takes from one of its ends; kNoNumber: it does not.
  int64_t taken(size_t at, const analyze::Dims& sorted) const {
    const bool slices = name(at) == "aten::slice" || name(at) == "aten::narrow";
    const std::vector<analyze::Dims> shapes = dims(at);
    if (shapes.empty() || shapes[0] != sorted) return kNoNumber;
    const int64_t length = sorted.back();
    const int64_t dim = number(at, 1);
    if (dim != -1 && dim != static_cast<int64_t>(sorted.size()) - 1) return kNoNumber;
    const int64_t start = number(at, 2);
    if (name(at) == "aten::select") return start == 0 || start == -1 || start == length - 1 ? 1 : kNoNumber;
    if (!slices) return kNoNumber;
    const int64_t begin = start == kNoNumber ? 0 : start < 0 ? std::max<int64_t>(0, length + start) : start;
    const int64_t asked = number(at, 3);
    const int64_t end = name(at) == "aten::narrow" ? begin + asked
                        : asked == kNoNumber       ? length
                        : asked < 0                ? length + asked
                                                   : std::min(length, asked);
    if (begin != 0 && end != length) return kNoNumber;
    return std::max<int64_t>(0, end - begin);
  }

  std::optional<Wasted> look_at(size_t at) const {
    if (!sorts_all(at)) return {};
    const std::vector<analyze::Dims> shapes = dims(at);
    if (shapes.empty() || shapes[0].empty() || shapes[0].back() < kLongSort) return {};
    const analyze::Dims& sorted = shapes[0];
    const int64_t dim = name(at) == "aten::topk" ? number(at, 2) : number(at, 1);
    if (dim != kNoNumber && dim != -1 && dim != static_cast<int64_t>(sorted.size()) - 1) return {};
    Wasted wasted{.sort = ops_[at], .after = {}, .before = {}, .length = sorted.back()};
    if (take_few(at, sorted, wasted) || draw_few(at, sorted, wasted)) {
      look_for_topk(at, sorted, wasted);
      return wasted;
    }
    return {};
  }

  // A topk of the same scores: what it leaves out is taken out of all of them for the sort alone.
  void look_for_topk(size_t at, const analyze::Dims& sorted, Wasted& wasted) const {
    std::vector<Row> between;
    for (size_t i = at; i > 0 && at - i < kLooksBack; --i) {
      const std::vector<analyze::Dims> before = dims(i - 1);
      const bool takes_all = std::find(before.begin(), before.end(), sorted) != before.end();
      wasted.has_topk = takes_all && name(i - 1) == "aten::topk" && kFew * number(i - 1, 1) <= sorted.back();
      if (wasted.has_topk) break;
      if (takes_all) between.push_back(ops_[i - 1]);
    }
    if (wasted.has_topk) wasted.before = std::move(between);
  }

  // The next operators take a few from one end, and nothing else takes all.
  bool take_few(size_t at, const analyze::Dims& sorted, Wasted& wasted) const {
    for (size_t i = at + 1; i < std::min(ops_.size(), at + kLooksAhead); ++i) {
      const int64_t count = taken(i, sorted);
      if (count != kNoNumber && kFew * count <= sorted.back()) {
        wasted.used = std::max(wasted.used == kNoNumber ? 0 : wasted.used, count);
        continue;
      }
      const std::vector<analyze::Dims> shapes = dims(i);
      const bool takes_all =
          std::any_of(shapes.begin(), shapes.end(), [&](const analyze::Dims& each) { return each == sorted; });
      if (takes_all || sorts_all(i)) break;
      if (wasted.used != kNoNumber) return true;
    }
    return wasted.used != kNoNumber;
  }

  // Shares are added up in their order, and few are drawn: nucleus sampling.
  bool draw_few(size_t at, const analyze::Dims& sorted, Wasted& wasted) const {
    wasted.used = kNoNumber;
    bool adds_up = false;
    for (size_t i = at + 1; i < std::min(ops_.size(), at + kLooksAhead); ++i) {
      const std::vector<analyze::Dims> shapes = dims(i);
      const bool takes_all =
          std::any_of(shapes.begin(), shapes.end(), [&](const analyze::Dims& each) { return each == sorted; });
      if (sorts_all(i)) return false;
      if (!takes_all) continue;
      adds_up = adds_up || name(i) == "aten::cumsum";
      wasted.after.push_back(ops_[i]);
      const bool draws = name(i) == "aten::multinomial" || name(i) == "aten::argmax" || name(i) == "aten::exponential_";
      if (draws) return adds_up;
    }
    wasted.after.clear();
    return false;
  }

  const Context& context_;
  const Model& model_;
  std::vector<Row> ops_;  // outermost, of the lane that is looked at
};

// Share of the sort: topk reads all elements, too.
struct SortKeep {
  double low, high;
};

std::vector<Finding> find_full_sort(const Context& context) {
  if (context.study == nullptr) return {};
  const std::vector<Wasted> all = SortFinder(context).all();
  if (all.empty()) return {};
  Evidence evidence(context);
  bool is_known = true;  // how many are used
  int64_t used = 0;
  for (const Wasted& each : all) {
    const SortKeep sort = each.has_topk ? SortKeep{.low = 0.05, .high = 0} : SortKeep{.low = 0.5, .high = 0.15};
    constexpr SortKeep kFewLeft = {.low = 0.15, .high = 0.02};
    is_known = is_known && (each.has_topk || each.used != kNoNumber);
    used = std::max(used, each.used == kNoNumber ? 0 : each.used);
    const auto add = [&](Row op, const SortKeep& keep) {
      if (!context.has_device_work) return evidence.add_call(op, keep.low, keep.high);
      for (const Row work : context.trace.get<launched_work>().during(op))
        evidence.add_device(work, keep.low, keep.high);
    };
    add(each.sort, sort);
    for (const Row op : each.after) add(op, kFewLeft);
    for (const Row op : each.before) add(op, {.low = 0, .high = 0});
    if (!each.has_topk || !context.has_device_work) continue;
    // These are not called at all, so that the host is done with them as well.
    std::vector<Row> gone = each.before;
    gone.push_back(each.sort);
    for (const Row op : gone) {
      evidence.add_host(op, 0);
      evidence.add_way_to(op);
    }
  }
  if (evidence.empty()) return {};
  const auto count = static_cast<int64_t>(all.size());
  Finding finding{.id = "full-sort",
                  .try_text = "topk finds the best elements without sorting the rest; continue with these",
                  .try_code = "best, words = scores.topk(50)  # then softmax, cumsum and multinomial over 50",
                  .confidence = is_known ? Confidence::kMedium : Confidence::kLow,
                  .confirm_by = is_known ? "compare results and step times"
                                         : "check how many elements make up the probability that is kept",
                  .precedence = is_known ? Precedence::kNeedless : Precedence::kByGain};
  evidence.fill(finding);
  finding.events = count;
  finding.title = std::to_string(all[0].length) + " elements are sorted " +
                  counted(std::max<int64_t>(1, context.study->per_step(count)), "time", "times") + " a step, but " +
                  (used > 0 ? "at most " + std::to_string(used) + " of them are used"
                            : std::string("only a few of them can be sampled")) +
                  ": " + short_percent(finding.share_of_step) + " of the step";
  return {finding};
}

}  // namespace

std::vector<Rule> full_sort_rules() {
  return {
      {"full-sort", "waste", 0.04, true,
       "A long dimension is sorted completely, but only a few of the best elements are used: the first k are sliced\n"
       "off, or one is sampled after a cumulative sum in sorted order (top-p sampling over a whole vocabulary).\n"
       "Sorting costs several passes over memory, and everything that follows works on every element as well.\n\n"
       "This finding covers sorts of 1,024 elements and more, followed by a slice or select of at most an eighth\n"
       "from one end and nothing else that reads all of them; or by cumsum and then multinomial or argmax on\n"
       "tensors of the same shape. Needs shapes and the numeric arguments of operators. The gain is a replay with\n"
       "topk instead, and with few elements in what follows; where a topk of the same scores runs anyway, the sort\n"
       "is dropped entirely.\n\n"
       "What to do: topk(k), and continue with its k values and indices.\n\n"
       "When not: the whole order is needed, or top-p without top-k must be exact: a few hundred tokens hold nearly\n"
       "all of the probability, but not all.",
       find_full_sort},
  };
}

}  // namespace firelane::advise
