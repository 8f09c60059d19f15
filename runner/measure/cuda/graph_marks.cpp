#include "runner/measure/cuda/graph_marks.h"

#include <vector>

#include "runner/measure/cuda/check.h"

namespace lockstep::runner {
namespace {

bool is_device_work(cudaGraphNode_t node) {
  cudaGraphNodeType type{};
  check(cudaGraphNodeGetType(node, &type), "reading a captured graph");
  return type == cudaGraphNodeTypeKernel || type == cudaGraphNodeTypeMemcpy ||
         type == cudaGraphNodeTypeMemset;
}

}  // namespace

int GraphMarks::new_work() {
  cudaStreamCaptureStatus status{};
  unsigned long long id = 0;
  cudaGraph_t graph = nullptr;
  check(cudaStreamGetCaptureInfo(stream_, &status, &id, &graph, nullptr, nullptr, nullptr),
        "looking into a capture");
  if (status != cudaStreamCaptureStatusActive) throw RunError("the stream captures no graph");
  std::size_t count = 0;
  check(cudaGraphGetNodes(graph, nullptr, &count), "reading a captured graph");
  std::vector<cudaGraphNode_t> nodes(count);
  check(cudaGraphGetNodes(graph, nodes.data(), &count), "reading a captured graph");
  int added = 0;
  for (const cudaGraphNode_t node : nodes) {
    if (known_.insert(node).second && is_device_work(node)) ++added;
  }
  return added;
}

}  // namespace lockstep::runner
