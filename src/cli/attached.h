// The conversation with the thread that firelane attach has started in a program: lines of text over a socket without
// a file (Linux's abstract names), so that neither side leaves anything behind, however it ends.
//
// To the program: one line with the plan (JSON), later perhaps "stop". From it: "WORD text" lines; the connection ends
// when everything is taken out again. If this side goes away, the program's takes itself out.
#pragma once

#include <string>

#include "base/result.h"
#include "live/process.h"

namespace firelane::cli {

struct Message {
  std::string word;  // "" when the conversation is over
  std::string text;
  bool program_ended = false;
};

class Channel {
 public:
  static Result<Channel> open();
  Channel(Channel&& other) noexcept;
  Channel& operator=(Channel&&) = delete;
  ~Channel();

  // The name that the program connects to, without the NUL in front.
  const std::string& address() const { return address_; }

  // Waits until the program has connected. False: not within that time, or the user interrupted. An Error when it
  // ended.
  Result<bool> wait_for(const live::Process& process, double seconds);
  void send(const std::string& line);
  // Waits for the next line. Ctrl-C, a SIGTERM or SIGHUP to this process sends "stop" once, and goes on waiting.
  Message next();

 private:
  Channel() = default;

  std::string address_;
  std::string received_;
  int listener_ = -1;
  int connection_ = -1;
  int process_ = -1;  // pidfd: readable when the program has ended
  bool asked_to_stop_ = false;
};

}  // namespace firelane::cli
