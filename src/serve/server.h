// The loopback server of `firelane view`: HTTP around an Api, for the person who started it and nobody else.
//
//   FL_TRY(auto server, Server::start(api, {}));
//   server->url();   // http://127.0.0.1:40123/?token=...
//
// It listens on 127.0.0.1 only. Every request has to name this host (a page of somebody else's that resolves its own
// name to 127.0.0.1 does not) and to bring the token, which is in the address that the user opened. Nothing but the
// files in the program and the answers of the Api is ever sent.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "serve/api.h"

namespace firelane::serve {

struct ServerOptions {
  int port = 0;       // 0 = one that is free
  std::string token;  // "" = random
};

class Server {
 public:
  static Result<std::unique_ptr<Server>> start(Api& api, const ServerOptions& options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const;
  const std::string& token() const;
  std::string url() const;
  // Ends all connections and waits for the requests that are being answered.
  void stop();

 private:
  struct State;
  explicit Server(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace firelane::serve
