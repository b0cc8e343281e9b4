// The data of the service as the page reads it; the scene is that of ibforecast/plots/scene.py.

export type State = "open" | "missing" | "closed";
export type Role = "level" | "baseline" | "usual" | "calendar" | "look-back" | "truth" | "forecast" | "known";
export type Values = (number | null)[];

export interface Tick {
  at: number;
  lines: string[];
}

export interface Row {
  kind: "channel" | "known";
  name: string;
  low: number;
  high: number;
  ticks: Tick[][];
  lines: { role: Role; first: number; values: Values }[];
  bands: { first: number; last: number; state: State; tone: number | null }[];
}

export interface Scene {
  headline: string;
  words: string;
  open_rate: number;
  budget: number;
  time: { steps: number; look_back: number; made: number; times: string[]; ticks: Tick[][] };
  rows: Row[];
  legend: { role: string; text: string }[];
  waterfall: { channel: string } | null;
  gates: { channels: string[]; patch_len: number; probability: number[][]; state: State[][]; text: string[][] };
}

/** The amounts that add up to one number of a forecast; `read` has one for every open token. */
export interface Receipt {
  forecast: number;
  calendar: number;
  read: number[];
  known: number[];
  unread: number | null;
  /** By how much the limits of the channel change what the model computed; null if it has none. */
  limit: number | null;
  /** The largest standard error of `read`; null if the amounts are exact. */
  error: number | null;
}

/** The receipts of a channel: of its mean, then of every step ahead unless these would be too many. */
export interface Receipts {
  channel: string;
  decimals: number;
  steps: Receipt[];
}

/** Why a forecast differs from an earlier one: `reasons` add up to the difference of `totals`, the earlier one first. */
export interface Comparison {
  other_at: string;
  decimals: number;
  totals: [number, number];
  reasons: { change: number; text: string }[];
  words: string;
}

/** A row with the values of each line padded to one per step. */
export interface DrawnRow extends Row {
  values: Partial<Record<Role, Values>>;
}

/** One explanation: its text, its picture, and the history that can be edited. */
export interface Explanation {
  text: string;
  scene: Scene;
  rows: DrawnRow[];
  channels: DrawnRow[];
  /** Those that are known; null if none were requested yet. */
  receipts: Receipts[] | null;
  history: Values[];
  /** Whether mask and context, too, were computed only from what was read. */
  sealed: boolean;
  times: string[];
  at: string;
  lookBack: number;
  patchLen: number;
  patches: number;
}

/** The changes that a user wishes; tokens are named "patch.channel". */
export interface Wish {
  flips: Set<string>;
  threshold: number | null;
  edits: Map<string, number[]>;
  scramble: number | null;
}

export interface Shift {
  channel: string;
  largest: number | null;
  in_scales: number | null;
}

/** A what-if: the mask and the values that were sent, and the answer. */
export interface WhatIf {
  mask: boolean[][];
  history: Values[] | null;
  edited: Values[] | null;
  forecast: Values[];
  shift: Shift[];
  openCount: number;
  openRate: number;
  allowance: number;
  withinBudget: boolean;
  sameBits: boolean;
  closedEdits: number;
  scrambled: number;
  scrambleMoved: boolean;
  /** Whether gates or values were changed by hand, and not only scrambled. */
  byHand: boolean;
  /** The result of the whole model with nothing held: how many values were replaced, and which arrays changed. */
  rerun: { replaced: number; changed: string[] } | null;
}

export interface Model {
  name: string;
  horizon: number;
  channels: string[];
  budget: number;
  any_budget: boolean;
  /** Undefined in a report, like the rest. */
  sealed?: boolean;
  patches?: number;
  patch_len?: number;
  past?: string[];
  zone?: string | null;
}

export interface Table {
  id: string;
  name: string;
  kind: string;
  channels: string[] | number | null;
}

export interface Verdict {
  verified: boolean | null;
  checks: { name: string; passed: boolean; detail: string }[];
  /** The checks that were not made. */
  notes: string[];
  made?: { on: string; version: string };
}

export interface History {
  windows: number;
  available: number;
  channels: string[];
  moments: string[];
  open_frequency: number[][];
  squared_error: Values;
  absolute_error: Values;
  open_rate: number[];
}

/**
 * The amounts that move each channel, averaged over windows: of single places (`rows`), where `steps_back` is null unless
 * the part is "read", of `sources` as wholes, and of sources in groups of windows, if they were requested.
 */
export interface Drivers {
  windows: number;
  channels: string[];
  sources: { channel: string; source: string; size: number; share: number }[];
  by: string | null;
  groups: {
    channel: string;
    group: string;
    source: string;
    size: number;
    mean: number;
    share: number;
    windows: number;
  }[];
  /** The sources of each channel that vary most between groups, in words. */
  watch: Record<string, string[]>;
  rows: {
    channel: string;
    part: "read" | "known ahead" | "unread" | "limit";
    source: string;
    steps_back: number | null;
    size: number;
    mean: number;
    share: number;
    read: number;
  }[];
}
