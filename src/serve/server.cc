#include "serve/server.h"

#include <httplib.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <exception>
#include <string_view>
#include <thread>

#include "serve/pages.h"

namespace firelane::serve {

namespace {

constexpr size_t kTokenBytes = 32;
// A connection that is kept open holds a thread; a browser opens six.
constexpr size_t kThreads = 24;
constexpr time_t kKeepAliveSeconds = 2;
constexpr time_t kTransferSeconds = 10;
constexpr size_t kRequestsPerConnection = 100'000;

// What the page may do: its own scripts and this server. 'unsafe-inline' for styles is what charts need.
constexpr const char* kContentPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; img-src 'self' data: "
    "blob:; "
    "font-src 'self' data:; worker-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

constexpr std::string_view kNoViewer =
    "<!doctype html><title>firelane</title><p>This firelane was built without its viewer. In the source tree: "
    "<code>make viewer &amp;&amp; make build</code> (needs Node.js).</p>";

Result<std::string> random_token() {
  std::array<unsigned char, kTokenBytes> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return Error{std::string("view: no random numbers from the system: ") + std::strerror(errno)};
  }
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

// Takes as long for a wrong token as for the right one.
bool is_same(std::string_view given, std::string_view secret) {
  unsigned difference = given.size() == secret.size() ? 0 : 1;
  for (size_t i = 0; i < secret.size(); ++i) {
    const char c = i < given.size() ? given[i] : '\0';
    difference |= static_cast<unsigned char>(c) ^ static_cast<unsigned char>(secret[i]);
  }
  return difference == 0;
}

void send(httplib::Response& response, Answer answer) {
  response.status = answer.status;
  // By a provider: httplib would compress texts, which costs more than it saves on one machine.
  auto body = std::make_shared<std::string>(std::move(answer.body));
  const std::string type(answer.type);
  if (body->empty()) {
    response.set_content("", type);
    return;
  }
  response.set_content_provider(body->size(), type, [body](size_t offset, size_t length, httplib::DataSink& sink) {
    return sink.write(body->data() + offset, length);
  });
}

}  // namespace

struct Server::State {
  explicit State(Api& the_api) : api(the_api) {}

  Answer route(const httplib::Request& request);
  Answer page(const Request& request) const;
  bool is_ours(const httplib::Request& request) const;
  bool has_token(const httplib::Request& request) const {
    return is_same(request.get_header_value("X-Firelane-Token"), token);
  }
  void set_up();

  Api& api;
  std::string token;
  int port = 0;
  httplib::Server http;
  std::thread listening;
};

// Exactly one Host, and an Origin only if it is this server.
bool Server::State::is_ours(const httplib::Request& request) const {
  const std::string here = "127.0.0.1:" + std::to_string(port);
  const std::string name = "localhost:" + std::to_string(port);
  if (request.get_header_value_count("Host") != 1 || request.get_header_value_count("Origin") > 1) return false;
  const std::string host = request.get_header_value("Host");
  if (host != here && host != name) return false;
  const std::string origin = request.get_header_value("Origin");
  return !request.has_header("Origin") || origin == "http://" + here || origin == "http://" + name;
}

Answer Server::State::page(const Request& request) const {
  std::string name;
  for (const std::string& part : request.path) name += (name.empty() ? "" : "/") + part;
  const bool is_start = name.empty() || name == "index.html";
  if (is_start) {
    const std::string* given = request.find("token");
    if (given == nullptr || !is_same(*given, token)) {
      return refusal(403, "open the address that firelane view printed, with its token");
    }
    name = "index.html";
  } else if (request.path.front() != "assets") {
    return refusal(404, "no such page");
  }
  const Page* found = find_page(name);
  if (found != nullptr) return {.type = found->type, .body = std::string(found->bytes)};
  if (is_start) return {.type = "text/html", .body = std::string(kNoViewer)};
  return refusal(404, "no such page");
}

Answer Server::State::route(const httplib::Request& request) {
  if (!is_ours(request)) return refusal(403, "this server answers its own page only");
  const bool is_post = request.method == "POST";
  if (request.method != "GET" && !is_post) return refusal(405, "only GET, and POST for SQL");
  if (request.has_header("Range")) return refusal(400, "no ranges here");
  Result<Request> parsed = parse_target(request.target);
  if (!parsed.ok()) return refusal(400, parsed.error().message);
  Request wanted = std::move(parsed).value();
  if (wanted.path.front() != "api") return is_post ? refusal(405, "pages are read with GET") : page(wanted);
  if (!has_token(request))
    return refusal(403, "the token is missing or wrong; open the address that firelane view printed");
  wanted.method = request.method;
  wanted.body = request.body;
  try {
    return api.answer(wanted);
  } catch (const std::bad_alloc&) {
    return refusal(500, "not enough memory for this answer");
  } catch (const std::exception& error) {
    return refusal(500, error.what());
  }
}

void Server::State::set_up() {
  http.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  http.set_keep_alive_max_count(kRequestsPerConnection);
  http.set_keep_alive_timeout(kKeepAliveSeconds);
  http.set_read_timeout(kTransferSeconds);
  http.set_write_timeout(kTransferSeconds);
  http.set_payload_max_length(kMaxBodyBytes);
  http.set_tcp_nodelay(true);
  // httplib's own options would share the port with any other program of this user.
  http.set_socket_options([](socket_t socket) {
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
  http.set_default_headers({{"Content-Security-Policy", kContentPolicy},
                            {"X-Content-Type-Options", "nosniff"},
                            {"Referrer-Policy", "no-referrer"},
                            {"Cross-Origin-Resource-Policy", "same-origin"},
                            {"X-Frame-Options", "DENY"},
                            {"Cache-Control", "no-store"}});
  // GET is answered before httplib looks for a route: its routes are regular expressions, which recurse on long paths.
  http.set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
    const bool has_body_to_read = request.method == "POST" && is_ours(request) && has_token(request);
    if (has_body_to_read) return httplib::Server::HandlerResponse::Unhandled;
    send(response, route(request));
    return httplib::Server::HandlerResponse::Handled;
  });
  http.Post("/api/t/[0-9]{1,6}/sql",
            [this](const httplib::Request& request, httplib::Response& response) { send(response, route(request)); });
  http.set_error_handler([](const httplib::Request&, httplib::Response& response) {
    if (!response.body.empty() || response.content_length_ != 0) return;
    std::string_view message = "the request cannot be read";
    if (response.status == 404) message = "no such request; docs/viewer-protocol.md lists them";
    if (response.status == 413) message = "the body is larger than 64 KiB";
    const Answer answer = refusal(response.status, message);
    response.set_content(answer.body, std::string(answer.type));
  });
}

Server::Server(std::unique_ptr<State> state) : state_(std::move(state)) {}

Server::~Server() { stop(); }

Result<std::unique_ptr<Server>> Server::start(Api& api, const ServerOptions& options) {
  auto state = std::make_unique<State>(api);
  state->token = options.token;
  if (state->token.empty()) {
    FL_TRY(state->token, random_token());
  }
  state->set_up();
  state->port = options.port;
  if (options.port == 0) {
    state->port = state->http.bind_to_any_port("127.0.0.1");
  } else if (!state->http.bind_to_port("127.0.0.1", options.port)) {
    state->port = -1;
  }
  if (state->port <= 0) {
    return Error{"view: cannot listen on 127.0.0.1 port " + std::to_string(options.port) + ": " + std::strerror(errno) +
                 "; choose another with --port, or leave it out"};
  }
  State* const running = state.get();
  state->listening = std::thread([running] { running->http.listen_after_bind(); });
  while (!state->http.is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return std::unique_ptr<Server>(new Server(std::move(state)));
}

int Server::port() const { return state_->port; }
const std::string& Server::token() const { return state_->token; }
std::string Server::url() const {
  return "http://127.0.0.1:" + std::to_string(state_->port) + "/?token=" + state_->token;
}

void Server::stop() {
  state_->http.stop();
  if (state_->listening.joinable()) state_->listening.join();
}

}  // namespace firelane::serve
