// The panes, in the order of their tabs. A new pane is a folder beside this file and its name here.

import type { Pane } from "../page/pane";
import { comparePane } from "./compare/compare_pane";
import { inferencePane } from "./inference/inference_pane";
import { inputPane } from "./input/input_pane";
import { kernelsPane } from "./kernels/kernels_pane";
import { memoryPane } from "./memory/memory_pane";
import { modulesPane } from "./modules/modules_pane";
import { morePane } from "./more/more_pane";
import { opsPane } from "./ops/ops_pane";
import { overviewPane } from "./overview/overview_pane";
import { ranksPane } from "./ranks/ranks_pane";
import { sqlPane } from "./sql/sql_pane";
import { stacksPane } from "./stacks/stacks_pane";
import { stepsPane } from "./steps/steps_pane";
import { timelinePane } from "./timeline/timeline_pane";

export const panes: Pane[] = [
  ranksPane,
  overviewPane,
  comparePane,
  timelinePane,
  opsPane,
  kernelsPane,
  modulesPane,
  stacksPane,
  memoryPane,
  stepsPane,
  inputPane,
  inferencePane,
  morePane,
  sqlPane,
];
