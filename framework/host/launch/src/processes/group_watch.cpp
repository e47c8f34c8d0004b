#include "processes/group_watch.h"

#include <signal.h>

#include <vector>

namespace treadle::launch {

void GroupWatch::watch(RankGroup& group, OtherHosts* others) {
  std::vector<pollfd> descriptors;
  while (!group.is_over() || (others != nullptr && !others->are_over())) {
    descriptors.assign({{signals_.descriptor(), POLLIN, 0}});
    group.add_descriptors(descriptors);
    if (others != nullptr)
      others->add_descriptors(descriptors);
    ::poll(descriptors.data(), descriptors.size(), static_cast<int>(group.patience().count()));
    while (const std::optional<int> signal = signals_.next())
      pass_on(*signal, group);
    group.check();
    if (group.is_stopping())
      is_stopping_ = true;
    if (others != nullptr)
      others->exchange(group);
  }
}

void GroupWatch::take_signals() {
  while (const std::optional<int> signal = signals_.next()) {
    if (signal == SIGTSTP) {
      ::raise(SIGSTOP);
    } else if (signal != SIGCONT) {
      is_stopping_ = true;
    }
  }
}

void GroupWatch::pass_on(int signal, RankGroup& group) {
  if (signal == SIGTSTP) {
    pause(group);
  } else if (signal == SIGINT && is_stopping_) {
    group.kill();
  } else if (signal != SIGCONT) {
    is_stopping_ = true;
    group.ask_to_stop();
  }
}

/// Ctrl-Z: the shell is to see that this process stands still, and SIGTSTP is held back.
void GroupWatch::pause(RankGroup& group) {
  group.freeze();
  ::raise(SIGSTOP);
  group.thaw();
}

}  // namespace treadle::launch
