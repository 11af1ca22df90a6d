// Labeled fields for toolbars: checkbox, select, number.

import type { JSX } from "preact";
import "./fields.css";

interface FieldProps<Value> {
  label: string;
  value: Value;
  onChange: (value: Value) => void;
}

export function Checkbox(props: FieldProps<boolean>): JSX.Element {
  return (
    <label class="check">
      <input type="checkbox" checked={props.value} onChange={(event) => props.onChange(event.currentTarget.checked)} />
      {props.label}
    </label>
  );
}

// `options` are [value, text].
export function Select(props: FieldProps<string> & { options: readonly (readonly [string, string])[] }): JSX.Element {
  return (
    <label class="check">
      {props.label}{" "}
      <select class="field" value={props.value} onChange={(event) => props.onChange(event.currentTarget.value)}>
        {props.options.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

// The value stays text: "" means not given.
export function NumberField(props: FieldProps<string> & { step: string }): JSX.Element {
  return (
    <label class="check">
      {props.label}
      <input
        class="field short"
        type="number"
        min="0"
        step={props.step}
        value={props.value}
        onChange={(event) => props.onChange(event.currentTarget.value)}
      />
    </label>
  );
}
