// What a pane is to the shell. `src/panes/index.ts` lists them in the order of the tabs.

import type { ComponentType } from "preact";
import type { TraceClient } from "../data/client";
import type { SetClient } from "../data/set_client";

export interface PaneProps {
  trace: TraceClient;
}

export interface SetPaneProps {
  set: SetClient;
}

interface AnyPane {
  id: string; // in the link, and the prefix of the pane's own keys there
  title: string;
  fills?: boolean; // fills the window and scrolls by itself (the timeline); otherwise the page scrolls
  help?: ComponentType; // its part of the help dialog: keys, mouse, colors
}

export interface TracePane extends AnyPane {
  component: ComponentType<PaneProps>;
}

// About the traces together, whichever is chosen: shown where the server's list of traces names its id. It is drawn while traces
// still load, and says so itself.
export interface SetPane extends AnyPane {
  ofSet: ComponentType<SetPaneProps>;
}

export type Pane = TracePane | SetPane;
