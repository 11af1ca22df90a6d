// The server as an attacker on this machine, or a page in the same browser, would see it.
#include "serve/server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <random>
#include <string>

#include "model/trace_builder.h"
#include "serve/pages.h"

namespace firelane::serve {
namespace {

class ServerTest : public ::testing::Test {
 protected:
  ServerTest()
      : api(TraceBuilder().kernel("gemm", {.start_us = 0, .end_us = 5}).build(), "1.2"),
        server(std::move(Server::start(api, {})).value()) {}

  httplib::Client client() const { return httplib::Client("127.0.0.1", server->port()); }
  httplib::Headers with_token() const { return {{"X-Firelane-Token", server->token()}}; }

  int status_of(const std::string& path, const httplib::Headers& headers) const {
    const auto got = client().Get(path, headers);
    return got ? got->status : -1;
  }

  // Sends bytes as they are and reads what comes until the other side closes, or for so long. httplib sends no answer
  // to who says that nothing more will come; what is not a whole request ends no other way.
  std::string send_raw(std::string_view bytes, int wait_ms = 20'000, bool is_whole = false) const {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(server->port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval wait{.tv_sec = wait_ms / 1000, .tv_usec = (wait_ms % 1000) * 1000};
    ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
    std::string got;
    if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
      (void)::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (!is_whole) ::shutdown(socket, SHUT_WR);
      char buffer[4096];
      for (ssize_t n = 0; (n = ::recv(socket, buffer, sizeof(buffer), 0)) > 0;)
        got.append(buffer, static_cast<size_t>(n));
    }
    ::close(socket);
    return got;
  }

  Api api;
  std::unique_ptr<Server> server;
};

TEST_F(ServerTest, answers_with_the_token_and_refuses_without_or_with_a_wrong_one) {
  EXPECT_EQ(status_of("/api/traces", with_token()), 200);
  EXPECT_EQ(status_of("/api/traces", {}), 403);
  EXPECT_EQ(status_of("/api/traces", {{"X-Firelane-Token", ""}}), 403);
  std::string wrong = server->token();
  wrong.back() = wrong.back() == '0' ? '1' : '0';
  EXPECT_EQ(status_of("/api/traces", {{"X-Firelane-Token", wrong}}), 403);
  EXPECT_EQ(status_of("/api/traces", {{"X-Firelane-Token", server->token() + "0"}}), 403);
  EXPECT_EQ(status_of("/api/traces", {{"X-Firelane-Token", server->token().substr(1)}}), 403);
  EXPECT_EQ(status_of("/api/traces?token=" + server->token(), {}), 403) << "the address is for the page alone";
}

TEST_F(ServerTest, tokens_are_long_and_new_for_every_start) {
  Api other_api(TraceBuilder().build(), "1.2");
  const auto other = std::move(Server::start(other_api, {})).value();
  EXPECT_EQ(server->token().size(), 64u);
  EXPECT_NE(server->token(), other->token());
  EXPECT_NE(server->port(), other->port());
}

TEST_F(ServerTest, the_page_needs_the_token_in_its_address) {
  EXPECT_EQ(status_of("/", {}), 403);
  EXPECT_EQ(status_of("/index.html", {}), 403);
  EXPECT_EQ(status_of("/?token=00", {}), 403);
  const auto page = client().Get("/?token=" + server->token());
  ASSERT_TRUE(page);
  EXPECT_EQ(page->status, 200);
  EXPECT_NE(page->body.find("<!doctype html>"), std::string::npos);
}

TEST_F(ServerTest, a_foreign_host_or_origin_is_refused) {
  const std::string port = std::to_string(server->port());
  const auto with = [&](const char* name, const std::string& value) {
    httplib::Headers headers = with_token();
    headers.emplace(name, value);
    return status_of("/api/traces", headers);
  };
  EXPECT_EQ(with("Host", "localhost:" + port), 200);
  EXPECT_EQ(with("Host", "evil.example:" + port), 403);
  EXPECT_EQ(with("Host", "127.0.0.1"), 403);
  EXPECT_EQ(with("Host", "127.0.0.1:" + port + ".evil.example"), 403);
  EXPECT_EQ(with("Origin", "http://127.0.0.1:" + port), 200);
  EXPECT_EQ(with("Origin", "http://localhost:" + port), 200);
  EXPECT_EQ(with("Origin", "https://127.0.0.1:" + port), 403);
  EXPECT_EQ(with("Origin", "http://evil.example"), 403);
  EXPECT_EQ(with("Origin", "null"), 403);
  const std::string twice = "GET /api/traces HTTP/1.1\r\nHost: 127.0.0.1:" + port +
                            "\r\nHost: evil.example\r\nX-Firelane-Token: " + server->token() +
                            "\r\nConnection: close\r\n\r\n";
  EXPECT_TRUE(send_raw(twice, 20'000, true).starts_with("HTTP/1.1 403"));
}

TEST_F(ServerTest, nothing_but_the_viewers_files_is_served) {
  for (const char* path : {"/etc/passwd", "/assets/../../../etc/passwd", "/assets/%2e%2e/%2e%2e/etc/passwd",
                           "/assets/..%2f..%2fetc/passwd", "/..", "/assets", "/assets/", "/report.html",
                           "/assets/none.js", "//etc/passwd", "/assets//etc/passwd", "/assets/%00", "/.git/config"}) {
    const auto got = client().Get(path, with_token());
    ASSERT_TRUE(got) << path;
    EXPECT_EQ(got->status, 404) << path;
    EXPECT_EQ(got->body.find("root:"), std::string::npos);
  }
}

TEST_F(ServerTest, every_answer_forbids_what_the_page_does_not_need) {
  for (const std::string& path : {std::string("/api/traces"), std::string("/nothing"), "/?token=" + server->token()}) {
    const auto got = client().Get(path, with_token());
    ASSERT_TRUE(got);
    EXPECT_TRUE(got->get_header_value("Content-Security-Policy").starts_with("default-src 'none'; script-src 'self';"));
    EXPECT_EQ(got->get_header_value("X-Content-Type-Options"), "nosniff");
    EXPECT_EQ(got->get_header_value("Referrer-Policy"), "no-referrer");
    EXPECT_FALSE(got->has_header("Access-Control-Allow-Origin"));
  }
}

TEST_F(ServerTest, only_get_and_a_post_of_sql_are_taken) {
  auto http = client();
  const auto post = http.Post("/api/t/0/sql", with_token(), R"({"query": "select 1 as one"})", "application/json");
  ASSERT_TRUE(post);
  EXPECT_EQ(post->status, 200) << post->body;
  EXPECT_NE(post->body.find(R"("rows":[[1]])"), std::string::npos);
  const auto other = http.Post("/api/t/0/lanes", with_token(), "x", "text/plain");
  ASSERT_TRUE(other);
  EXPECT_EQ(other->status, 404);
  EXPECT_EQ(client().Post("/api/t/0/sql", "{}", "application/json")->status, 403);
  EXPECT_EQ(client().Put("/api/traces", with_token(), "x", "text/plain")->status, 405);
  EXPECT_EQ(client().Delete("/api/traces", with_token())->status, 405);
  EXPECT_EQ(client().Options("/api/traces", with_token())->status, 405);
}

TEST_F(ServerTest, oversized_requests_are_refused_and_the_server_goes_on) {
  const auto large =
      client().Post("/api/t/0/sql", with_token(), std::string(kMaxBodyBytes + 1, ' '), "application/json");
  if (large) {
    EXPECT_EQ(large->status, 413);  // or the connection is closed while we still send
  }
  const std::string long_path = "/api/" + std::string(20'000, 'a');
  send_raw("GET " + long_path + " HTTP/1.1\r\n\r\n");
  send_raw("GET / HTTP/1.1\r\nX: " + std::string(100'000, 'a') + "\r\n\r\n");
  std::string ranges = "bytes=0-0";
  while (ranges.size() < 8100) ranges += ",0-0";
  send_raw("GET /api/traces HTTP/1.1\r\nHost: 127.0.0.1\r\nRange: " + ranges + "\r\n\r\n");
  std::string many = "GET / HTTP/1.1\r\n";
  for (int i = 0; i < 5000; ++i) many += "H" + std::to_string(i) + ": v\r\n";
  send_raw(many + "\r\n");
  EXPECT_EQ(status_of("/api/" + std::string(7000, 'a'), with_token()), 404);
  EXPECT_EQ(status_of("/api/traces", with_token()), 200);
}

TEST_F(ServerTest, malformed_requests_are_refused_and_the_server_goes_on) {
  for (const char* bytes :
       {"", "\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "\0\0\0\0", "GET /%zz HTTP/1.1\r\n\r\n",
        "POST /api/t/0/sql HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        "POST /api/t/0/sql HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\nx",
        "POST /api/t/0/sql HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
        "GET / HTTP/1.1\r\nHost\r\n\r\n", "GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n"}) {
    EXPECT_FALSE(send_raw(bytes).starts_with("HTTP/1.1 200")) << bytes;
  }
  EXPECT_EQ(status_of("/api/traces", with_token()), 200);
}

TEST_F(ServerTest, survives_a_stream_of_random_requests) {
  std::mt19937 random(11);
  const std::string port = std::to_string(server->port());
  const std::string good =
      "POST /api/t/0/sql HTTP/1.1\r\nHost: 127.0.0.1:" + port + "\r\nX-Firelane-Token: " + server->token() +
      "\r\nRange: bytes=0-1,4-\r\nAccept-Encoding: gzip, br\r\nContent-Type: multipart/form-data; "
      "boundary=x\r\nConnection: close\r\nContent-Length: 30\r\n\r\n--x\r\n{\"query\": \"select 1\"}\r\n--x--";
  for (int i = 0; i < 150; ++i) {
    std::string bytes = good;
    if (i % 3 == 0) {
      bytes.assign(random() % 2000, ' ');
      for (char& c : bytes) c = static_cast<char>(random());
    } else {
      for (uint32_t n = random() % 12; n > 0; --n) {
        const size_t at = random() % bytes.size();
        if (random() % 4 == 0) {
          bytes.erase(at, random() % 20);
        } else {
          bytes[at] = static_cast<char>(random());
        }
        if (bytes.empty()) bytes = " ";
      }
    }
    send_raw(bytes, 20);
  }
  EXPECT_EQ(status_of("/api/traces", with_token()), 200);
}

TEST_F(ServerTest, a_port_in_use_is_an_error_that_names_it) {
  Api other(TraceBuilder().build(), "1.2");
  const auto second = Server::start(other, {.port = server->port()});
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().message.find(std::to_string(server->port())), std::string::npos);
}

TEST_F(ServerTest, stops_at_once_although_a_client_holds_its_connection) {
  httplib::Client http("127.0.0.1", server->port());
  http.set_keep_alive(true);
  ASSERT_TRUE(http.Get("/api/traces", with_token()));
  server->stop();
  EXPECT_EQ(status_of("/api/traces", with_token()), -1);
}

TEST(Pages, are_found_by_their_name_and_have_a_type) {
  EXPECT_EQ(find_page("none"), nullptr);
  for (const Page& page : all_pages()) {
    EXPECT_EQ(find_page(page.name), &page);
    EXPECT_FALSE(page.bytes.empty());
    EXPECT_NE(page.type, "application/octet-stream") << page.name;
  }
}

}  // namespace
}  // namespace firelane::serve
