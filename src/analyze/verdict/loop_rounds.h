// Rounds of operators that repeat within a step: whether they are a loop, or layers of a model.
//
// What tells them apart is in loops.h; here are the traits of single operators that it rests on, and the questions that
// are asked of the rounds.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "analyze/verdict/repeats.h"
#include "analyze/verdict/round_data.h"
#include "model/model.h"

namespace firelane::analyze {

// What an op says about the round that it is in.
enum Trait : uint16_t {
  kIsView = 1,
  kPicks = 2,   // takes a piece: select, slice, index, a table
  kReads = 4,   // brings a number to the host
  kCopies = 8,  // between devices or types
  kLayer = 16,  // normalization, convolution, attention
  kMatmul = 32,
  kAutograd = 64,
  kAsks = 128,         // the size of its result depends on the data: a mask as index
  kWeight = 256,       // of the backward pass: computes the gradient of a weight
  kEmbeds = 1024,      // looks a table up: once in a pass over a model
  kSamples = 2048,     // chooses from what the model says: the next token
  kHasWeights = 4096,  // a product, convolution or normalization with parameters of its own
  kAccumulates = 512,  // of the backward pass: a parameter has its gradient
  kMoves = 8192,       // copies to another device or type, not into a tensor that is there
};

struct Token {
  Row row = kNoRow;
  StringId name{};
  uint16_t traits = 0;  // Trait; with those of the views before it
};

class Rounds {
 public:
  explicit Rounds(const Model& model);

  // The outermost ops of a lane in order, views left out. All lanes come before the first question.
  std::vector<Token> tokens_of(LaneId lane);

  // A step begins, and these are its repeats: those of its backward pass tell which weights are shared.
  void begin_step() { rounds_with_shared_weights_.clear(); }
  void see(std::span<const Token> tokens, const Repeat& repeat);

  bool is_loop(std::span<const Token> tokens, const Repeat& repeat) const;
  // The same of rounds that differ.
  bool is_uneven_loop(std::span<const Token> tokens, const Repeat& repeat) const;

  // Whether a backward pass begins in each of the first rounds: they are passes over the model, no layers of it.
  bool goes_back(std::span<const Token> tokens, const Repeat& repeat) const;
  // The Python function that calls the body's first op in the first and in the last round: the same call of it.
  Row function_of(std::span<const Token> tokens, const Repeat& repeat) const;
  RoundData data_of(std::span<const Token> tokens, const Repeat& repeat) const;

 private:
  uint16_t traits(Row row);
  bool finds_nonzero(Row op) const;
  bool has_shared_weights(const Repeat& repeat) const;
  bool is_over_pieces(std::span<const Token> tokens, const Repeat& repeat) const;
  bool is_for_lists(std::span<const Token> tokens, const Repeat& repeat) const;
  bool takes_one_sample(std::span<const Token> tokens, const Repeat& repeat) const;
  bool same_shapes(std::span<const Token> tokens, const Repeat& repeat) const;
  bool grows(std::span<const Token> tokens, const Repeat& repeat) const;
  bool lies_in(Row row, bool (*is_range)(HostRole)) const;
  bool in_optimizer(Row row) const;
  bool in_loader(Row row) const;

  const Model& model_;
  RoundsData data_;
  StringId nonzero_;
  StringId unbind_;
  std::vector<Row> unbound_;      // calls of it
  std::vector<uint16_t> traits_;  // by name
  std::vector<int64_t> backward_starts_;
  std::vector<size_t> rounds_with_shared_weights_;  // of the step that is looked at
};

}  // namespace firelane::analyze
