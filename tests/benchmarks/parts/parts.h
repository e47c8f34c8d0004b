#pragma once

namespace treadle {
class Runtime;
}

/// Each adds its measurements to Google Benchmark's list. A name says what is measured, who does it
/// (`treadle`, or the peer's name), and how large it is. The runtime must outlive the measurements.
namespace treadle::benchmarks {

void add_loader();
void add_optimizers(const Runtime& runtime);
void add_csv(const Runtime& runtime);
void add_graphs(const Runtime& runtime);
void add_nodes();
void add_windows(const Runtime& runtime);

}  // namespace treadle::benchmarks
