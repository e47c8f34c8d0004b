// Processes of other launchers whose places are wrong, or that do not meet: each ends by itself,
// soon after the time-out, with words about the cause.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "command_fixture.h"

namespace treadle {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::AnyOf;
using testing::Each;
using testing::Field;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;
using Variables = std::map<std::string, std::string>;

constexpr milliseconds kTimeout{1500};
constexpr milliseconds kGrace{5000};

/// A port of this host at which nobody listens, or the program of the test.
class Port {
 public:
  Port() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ::bind(socket_, reinterpret_cast<sockaddr*>(&address), size);
    ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
    number_ = ntohs(address.sin_port);
  }
  ~Port() { ::close(socket_); }
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  std::string text() const { return std::to_string(number_); }
  int socket() const { return socket_; }
  void listen() const { ::listen(socket_, 16); }
  int accept() const { return ::accept(socket_, nullptr, nullptr); }
  /// Wakes accept().
  void shut() const { ::shutdown(socket_, SHUT_RDWR); }

 private:
  int socket_;
  std::uint16_t number_ = 0;
};

std::string free_port() {
  return Port().text();
}

/// A web server: whatever it is sent, it answers with an error, and keeps the connection.
class WebServer {
 public:
  WebServer() {
    port_.listen();
    thread_ = std::thread([this] { serve(); });
  }
  ~WebServer() {
    port_.shut();
    thread_.join();
  }
  WebServer(const WebServer&) = delete;
  WebServer& operator=(const WebServer&) = delete;

  std::string port() const { return port_.text(); }

 private:
  void serve() {
    std::vector<pollfd> open{{port_.socket(), POLLIN, 0}};
    while (::poll(open.data(), open.size(), -1) > 0) {
      if (open[0].revents != 0) {
        const int client = port_.accept();
        if (client < 0)
          break;
        open.push_back({client, POLLIN, 0});
      }
      for (std::size_t i = 1; i < open.size(); ++i) {
        if (open[i].revents != 0)
          answer(open[i]);
      }
    }
    for (std::size_t i = 1; i < open.size(); ++i) {
      if (open[i].fd >= 0)
        ::close(open[i].fd);
    }
  }
  static void answer(pollfd& client) {
    constexpr std::string_view kAnswer = "HTTP/1.1 400 Bad Request\r\n\r\n";
    char request[4096];
    if (::recv(client.fd, request, sizeof request, 0) > 0) {
      ::send(client.fd, kAnswer.data(), kAnswer.size(), MSG_NOSIGNAL);
    } else {
      ::close(client.fd);
      client.fd = -1;  // poll() passes over it
    }
  }

  Port port_;
  std::thread thread_;
};

class SharedPlaces : public CommandFixture {
 protected:
  void SetUp() override { skip_without("communicator", "gloo"); }

  SharedPlaces() {
    given_points();
    given_document(3, {{"resources", {{"shards", 4}}}});
    set("TREADLE_TIMEOUT_MS", std::to_string(kTimeout.count()));
  }

  /// As torchrun starts it.
  static Variables place(int rank, int size, const std::string& port) {
    return {{"RANK", std::to_string(rank)},
            {"WORLD_SIZE", std::to_string(size)},
            {"MASTER_ADDR", "127.0.0.1"},
            {"MASTER_PORT", port}};
  }

  Running start_with(const Variables& variables,
                     const std::vector<std::string>& words = {"run", "points.json", "--quiet"},
                     const std::string& in = ".") {
    std::vector<std::string> all{"env", "-C", in};
    for (const auto& [name, value] : variables)
      all.push_back(name + "=" + value);
    all.push_back(runner());
    all.insert(all.end(), words.begin(), words.end());
    return start_program(all);
  }
  Finished run_with(const Variables& variables) { return start_with(variables).wait(); }

  /// All ranks end, at the latest a little after the time-out.
  std::vector<Finished> run_all(const std::vector<Variables>& places) {
    const auto begin = Clock::now();
    std::vector<std::future<Finished>> running;
    for (const Variables& one : places)
      running.push_back(std::async(std::launch::async, [this, &one] { return run_with(one); }));
    std::vector<Finished> ended;
    for (std::future<Finished>& one : running)
      ended.push_back(one.get());
    EXPECT_LT(Clock::now() - begin, kTimeout + kGrace);
    return ended;
  }

  /// The end of two ranks of one group of two, of which the second has something of its own.
  std::vector<Finished> run_pair(const Variables& of_second, const std::string& folder_of_second,
                                 const std::vector<std::string>& words) {
    const std::string port = free_port();
    Running first = start_with(place(0, 2, port));
    Variables second_place = place(1, 2, port);
    second_place.insert(of_second.begin(), of_second.end());
    Running second = start_with(second_place, words, folder_of_second);
    std::vector<Finished> ended{first.wait()};
    ended.push_back(second.wait());
    return ended;
  }

  static auto ended(int code, const testing::Matcher<const std::string&>& words) {
    return AllOf(Field(&Finished::code, code), Field(&Finished::err, words));
  }
};

TEST_F(SharedPlaces, ThatAreIncompleteOrImpossibleAreErrorsOfUsage) {
  const Variables whole = place(1, 2, "29500");
  const auto changed = [&](const std::string& name, const std::string& value) {
    Variables variables = whole;
    variables[name] = value;
    return variables;
  };
  const auto without = [&](const std::string& name) {
    Variables variables = whole;
    variables.erase(name);
    return variables;
  };
  Variables two = whole;
  two.insert({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}});
  const std::pair<Variables, const char*> kCases[] = {
      {without("WORLD_SIZE"), "RANK is set, but WORLD_SIZE is not"},
      {without("MASTER_ADDR"), "RANK is set, but MASTER_ADDR is not"},
      {changed("RANK", "2"), "RANK is \"2\", expected a rank below WORLD_SIZE, which is 2"},
      {changed("WORLD_SIZE", "0"), "WORLD_SIZE is \"0\", expected a whole number from 1"},
      {changed("WORLD_SIZE", "-1"), "WORLD_SIZE is \"-1\", expected a whole number from 1"},
      {changed("WORLD_SIZE", "four"), "WORLD_SIZE is \"four\", expected a whole number from 1"},
      {two,
       "two launchers place this process differently: torchrun (RANK=1, WORLD_SIZE=2) and "
       "mpirun (OMPI_COMM_WORLD_RANK=0, OMPI_COMM_WORLD_SIZE=2)"},
  };
  std::vector<Variables> all;
  for (const auto& one : kCases)
    all.push_back(one.first);

  const std::vector<Finished> ended_ones = run_all(all);

  for (std::size_t i = 0; i < ended_ones.size(); ++i)
    EXPECT_THAT(ended_ones[i], ended(2, HasSubstr(kCases[i].second)));
}

TEST_F(SharedPlaces, OfLaunchAreCountedFromOne) {
  for (const char* count : {"0", "-1", "four", "1e3"}) {
    EXPECT_THAT(run({"launch", std::string("--processes=") + count, "points.json"}),
                ended(2, HasSubstr("--processes: expected a whole number from 1 to 4096, got \"" +
                                   std::string(count) + "\"")));
  }
}

TEST_F(SharedPlaces, WhoseFirstRankIsMissingNameItsServer) {
  Variables unknown = place(1, 2, "29500");
  unknown["MASTER_ADDR"] = "no-such-host.invalid";

  const std::vector<Finished> all = run_all({place(1, 2, free_port()), unknown});

  EXPECT_THAT(all[0], ended(8, HasSubstr("the group's server cannot be reached (Connection "
                                         "refused); check that rank 0 was started there")));
  EXPECT_THAT(all[1],
              ended(8, HasSubstr("\"no-such-host.invalid\" is no host that is known here")));
}

TEST_F(SharedPlaces, ThatAreMissingAreNamed) {
  const std::string port = free_port();

  const std::vector<Finished> all = run_all({place(0, 4, port), place(2, 4, port)});

  EXPECT_THAT(all[0], ended(8, HasSubstr("ranks 1 and 3 of 4 did not join within 1.5 s")));
  EXPECT_THAT(all[1], ended(8, HasSubstr("ranks 1 and 3 of 4 did not join within 1.5 s")));
}

TEST_F(SharedPlaces, AtThePortOfAWebServerDoNotMeet) {
  const WebServer web;

  const std::vector<Finished> all = run_all({place(0, 2, web.port()), place(1, 2, web.port())});

  EXPECT_THAT(
      all[0],
      ended(8, AllOf(HasSubstr("127.0.0.1:" + web.port() + ": rank 0 cannot serve the group here"),
                     HasSubstr("choose a free port of this host"))));
  EXPECT_THAT(all[1], ended(8, AllOf(HasSubstr("127.0.0.1:" + web.port()),
                                     AnyOf(HasSubstr("another program may listen there"),
                                           HasSubstr("the group's meeting place fails")))));
}

TEST_F(SharedPlaces, ThatTwoProcessesHaveAreGivenToOne) {
  const std::string port = free_port();

  const std::vector<Finished> all =
      run_all({place(0, 2, port), place(1, 2, port), place(1, 2, port)});

  EXPECT_EQ(all[0].code, 0) << all[0].err;
  EXPECT_EQ(std::min(all[1].code, all[2].code), 0) << all[1].err << all[2].err;
  EXPECT_THAT(all[1].code == 0 ? all[2] : all[1],
              ended(8, AnyOf(HasSubstr("another process is rank 1 of this group already"),
                             HasSubstr("the group's server cannot be reached"))));
}

TEST_F(SharedPlaces, OfGroupsOfOtherSizesDoNotMeet) {
  const std::string port = free_port();

  const std::vector<Finished> all = run_all({place(0, 2, port), place(1, 3, port)});

  EXPECT_THAT(all, Each(Field(&Finished::code, 8)));
  EXPECT_THAT(all[0].err + all[1].err, HasSubstr("another group meets here: it has "));
}

TEST_F(SharedPlaces, WithOtherDocumentsDataOrProcessorsTrainNothing) {
  const std::vector<std::string> same{"run", "points.json", "--quiet"};
  std::vector<std::string> other = same;
  other.insert(other.end(), {"--set", "seed=8"});
  write("elsewhere/points.json", read("points.json"));
  std::string points = read("points.csv");
  points.replace(points.find("-20"), 3, "-21");
  write("elsewhere/points.csv", points);

  const auto documents = run_pair({}, ".", other);
  const auto data = run_pair({}, "elsewhere", same);
  const auto processors = run_pair({{"ATEN_CPU_CAPABILITY", "default"}}, ".", same);

  const auto refused = [](const std::string& what) {
    return Each(ended(6, AllOf(HasSubstr("would train under different conditions: "),
                               HasSubstr(what), HasSubstr("in rank 1"))));
  };
  EXPECT_THAT(documents, refused("/seed was 7 and is now 8"));
  EXPECT_THAT(data, refused("data"));
  EXPECT_THAT(processors, refused("cpu"));
  EXPECT_FALSE(std::filesystem::exists(folder() / "runs/model.safetensors"));
}

}  // namespace
}  // namespace treadle
