#pragma once

namespace treadle::plan {

struct Program;

/// Compiler passes. Each expects what the ones before it leave.

/// Of a program for inference: folds channel maps into the weights of the operation before, where
/// nothing else reads the value between. Changes results by rounding.
void fold_constants(Program& program);
/// Appends the instructions that compute gradients, in the order in which autograd would run them.
void add_backward(Program& program);
/// Removes aliases and joins adjacent element-wise operations of one spec into fused kernels.
void fuse_elementwise(Program& program);
/// Decides the life of every slot and its place in the arena. Last: it counts instructions.
void lay_out(Program& program);

/// All of them that apply to a program whose forward is lowered.
void complete(Program& program);

}  // namespace treadle::plan
