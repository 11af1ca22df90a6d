// Whether a CUDA graph is being captured. Then the device must be left alone: a synchronization or an event query makes
// the capture fail, and a recorded event would become part of the graph.
#pragma once

namespace firelane::torch_hooks {

// On the calling thread's current stream of any device: where torch.cuda.graph captures. What other threads capture is
// not seen. Starts nothing.
bool is_capturing_graph() noexcept;

}  // namespace firelane::torch_hooks
