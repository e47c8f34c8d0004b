#include <treadle/core/distributed/group_errors.h>

#include <cstddef>
#include <sstream>

namespace treadle {

std::string seconds_text(std::chrono::milliseconds time) {
  std::ostringstream text;
  text << static_cast<double>(time.count()) / 1000 << " s";
  return text.str();
}

std::string meeting_place(const Rendezvous& rendezvous) {
  return rendezvous.address.empty() ? rendezvous.folder.string() : rendezvous.address;
}

CommunicationError absent_ranks(const Rendezvous& rendezvous, std::span<const std::int64_t> ranks) {
  std::string list = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const bool is_last = i + 1 == ranks.size();
    list += (i == 0 ? "" : is_last ? " and " : ", ") + std::to_string(ranks[i]);
  }
  return CommunicationError(
      meeting_place(rendezvous) + ": " + list + " of " + std::to_string(rendezvous.world_size) +
          " did not join within " + seconds_text(rendezvous.timeout) +
          "; check that these processes were started and can reach this place",
      ranks.size() == 1 ? static_cast<int>(ranks[0]) : CommunicationError::kUnknownRank);
}

CommunicationError taken_rank(const Rendezvous& rendezvous) {
  return CommunicationError(meeting_place(rendezvous) + ": another process is rank " +
                                std::to_string(rendezvous.rank) +
                                " of this group already; give every process its own rank",
                            static_cast<int>(rendezvous.rank));
}

CommunicationError foreign_group(const Rendezvous& rendezvous, const std::string& difference) {
  return CommunicationError(meeting_place(rendezvous) +
                            ": another group meets here: " + difference + "; choose another " +
                            (rendezvous.address.empty() ? "folder" : "port") +
                            ", or start all processes of the group in the same way");
}

CommunicationError lost_rank(std::int64_t rank, const std::string& sign) {
  return CommunicationError("rank " + std::to_string(rank) + " is gone (" + sign +
                                "); see its own error, or whether its process was killed",
                            static_cast<int>(rank));
}

CommunicationError silent_rank(std::int64_t rank, std::chrono::milliseconds timeout) {
  return CommunicationError(
      "rank " + std::to_string(rank) + " did not answer within " + seconds_text(timeout) +
          "; its process hangs, its network is down, or it makes other calls than this one",
      static_cast<int>(rank));
}

CommunicationError aborted_group() {
  return CommunicationError("this process has aborted the group");
}

}  // namespace treadle
