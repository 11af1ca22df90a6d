// The panes beside the timeline, in the order of their tabs. The shell puts the timeline after the first.

import type { Pane } from "../app/pane";
import { InferencePane } from "./inference_pane";
import { InputPane } from "./input_pane";
import { KernelsPane } from "./kernels_pane";
import { MemoryPane } from "./memory/memory_pane";
import { ModulesPane } from "./modules/modules_pane";
import { MorePane } from "./more_pane";
import { OpsPane } from "./ops_pane";
import { OverviewPane } from "./overview/overview_pane";
import "./panes.css";
import { SqlPane } from "./sql/sql_pane";
import { StacksPane } from "./stacks/stacks_pane";
import { StepsPane } from "./steps/steps_pane";

export const panes: Pane[] = [
  { id: "overview", title: "Overview", component: OverviewPane },
  { id: "ops", title: "Operators", component: OpsPane },
  { id: "kernels", title: "Kernels", component: KernelsPane },
  { id: "modules", title: "Modules", component: ModulesPane },
  { id: "stacks", title: "Stacks", component: StacksPane },
  { id: "memory", title: "Memory", component: MemoryPane },
  { id: "steps", title: "Steps", component: StepsPane },
  { id: "input", title: "Input", component: InputPane },
  { id: "inference", title: "Inference", component: InferencePane },
  { id: "more", title: "More", component: MorePane },
  { id: "sql", title: "SQL", component: SqlPane },
];
