// A process of a group as tests need it: `treadle-fake-rank ACT…`, each act "WORD" or
// "WORD=NUMBER", done in turn by the ranks that "only=RANK" named last (at first: all);
// "generation=G": by those of this generation alone.
//
//   say                prints its rank, generation and words of its place
//   sleep=MS           sleeps without beats
//   steps=COUNT        beats COUNT times, 10 ms each
//   forever            beats until a signal ends it
//   hang               sleeps for ever; deaf: ignores SIGTERM from here on
//   crash=SIGNAL       kills itself by this signal; exit=CODE: ends
//   stop               on SIGTERM: ends with 130 after 50 ms, from here on
//   pid                notes the number of its process in the file "pids"
//   note               notes rank, local rank and address in the file "ranks"
//   child              starts a process that does so and sleeps for ever
//   record             records the folder my-run as its run
//   rest               beats no more
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include <treadle/host/launch/group_folder.h>
#include <treadle/host/launch/heartbeat.h>
#include <treadle/host/launch/worker_place.h>

namespace {

using namespace treadle::launch;

struct Player {
  WorkerPlace place = WorkerPlace::from(environment_variables());
  Heartbeat heartbeat{place.heartbeat};
  long step = 0;
  bool is_on = true;

  void wait(long ms) const { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }
  void steps(long count) {
    for (long i = 0; i < count; ++i) {
      heartbeat.beat(++step);
      wait(10);
    }
  }
};

/// For a test that looks for orphans.
void note_own_id() {
  std::ofstream("pids", std::ios::app) << std::to_string(getpid()) + "\n";
}

extern "C" void end_in_order(int) {
  usleep(50'000);
  _exit(130);
}

const std::map<std::string, std::function<void(Player&, long)>> kActs{
    {"say",
     [](Player& player, long) {
       printf("rank %ld of %ld, generation %ld, folder %s, plugins %s, workers %d\n",
              static_cast<long>(player.place.rank), static_cast<long>(player.place.world_size),
              static_cast<long>(player.place.generation), player.place.group_folder.c_str(),
              getenv("TREADLE_PLUGIN_PATH") != nullptr ? getenv("TREADLE_PLUGIN_PATH") : "none",
              player.place.workers);
       fflush(stdout);
     }},
    {"sleep", [](Player& player, long ms) { player.wait(ms); }},
    {"steps", [](Player& player, long count) { player.steps(count); }},
    {"forever",
     [](Player& player, long) {
       while (true)
         player.steps(1);
     }},
    {"hang",
     [](Player& player, long) {
       while (true)
         player.wait(1000);
     }},
    {"deaf", [](Player&, long) { signal(SIGTERM, SIG_IGN); }},
    {"crash", [](Player&, long number) { raise(static_cast<int>(number)); }},
    {"exit", [](Player&, long code) { _exit(static_cast<int>(code)); }},
    {"stop", [](Player&, long) { signal(SIGTERM, end_in_order); }},
    {"note",
     [](Player& player, long) {
       std::ofstream("ranks", std::ios::app) << std::to_string(player.place.rank) + ":" +
                                                    std::to_string(player.place.local_rank) + "@" +
                                                    player.place.address + "\n";
     }},
    {"child",
     [](Player& player, long) {
       if (fork() == 0) {
         note_own_id();
         while (true)
           player.wait(1000);
       }
     }},
    {"record",
     [](Player& player, long) {
       GroupFolder::record_run(player.place.group_folder,
                               std::filesystem::current_path() / "my-run");
     }},
    {"rest", [](Player& player, long) { player.heartbeat.rest(); }},
    {"pid", [](Player&, long) { note_own_id(); }},
};

}  // namespace

int main(int argc, char** argv) {
  Player player;
  for (int i = 1; i < argc; ++i) {
    const std::string act = argv[i];
    const std::size_t equals = std::min(act.find('='), act.size());
    const std::string word = act.substr(0, equals);
    const long number = equals < act.size() ? atol(act.c_str() + equals + 1) : 0;
    if (word == "only") {
      player.is_on = player.place.rank == number;
    } else if (word == "all") {
      player.is_on = true;
    } else if (word == "generation") {
      player.is_on = player.is_on && player.place.generation == number;
    } else if (player.is_on) {
      kActs.at(word)(player, number);
    }
  }
  return 0;
}
