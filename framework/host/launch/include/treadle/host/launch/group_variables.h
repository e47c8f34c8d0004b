#pragma once

/// The environment variables by which `workflow-runner launch` places a process in its group.
/// Supervisor sets them, WorkerPlace reads them.
namespace treadle::launch::variable {

inline constexpr char kRank[] = "TREADLE_RANK";
inline constexpr char kWorldSize[] = "TREADLE_WORLD_SIZE";
inline constexpr char kLocalRank[] = "TREADLE_LOCAL_RANK";
inline constexpr char kLocalWorldSize[] = "TREADLE_LOCAL_WORLD_SIZE";
inline constexpr char kJobId[] = "TREADLE_JOB_ID";
inline constexpr char kGeneration[] = "TREADLE_GENERATION";
/// Where rank 0 serves the group; not set where all processes are on one host.
inline constexpr char kAddress[] = "TREADLE_ADDRESS";
inline constexpr char kToken[] = "TREADLE_TOKEN";
/// Of this generation on this host; see GroupFolder.
inline constexpr char kGroupFolder[] = "TREADLE_GROUP_FOLDER";
/// The number of the inherited descriptor that Heartbeat writes to.
inline constexpr char kHeartbeat[] = "TREADLE_HEARTBEAT";
/// Threads that a process may use where its document leaves `resources.workers` at "auto". Also
/// without a launcher.
inline constexpr char kWorkers[] = "TREADLE_WORKERS";
/// Of each call of a communicator, in milliseconds. Also without `launch`.
inline constexpr char kTimeout[] = "TREADLE_TIMEOUT_MS";

}  // namespace treadle::launch::variable
