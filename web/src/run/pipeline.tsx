import clsx from "clsx";
import type { ConsultView, RunView } from "../gen/run";
import { LAYERS, layerWords, reached, stageState, strandsOf } from "../model/select";
import { isActive } from "../model/status";
import { Icon, type IconName } from "../ui/icon";
import { Button } from "../ui/parts";
import { useMedia } from "../ui/use-width";
import { StripKey } from "../viz/heat-strip";
import { Strands } from "../viz/strands";
import type { Place } from "./place";

const ICONS: Record<string, IconName> = { done: "check", running: "run", waiting: "wait", stopped: "pause" };

/** The chart of a run, its five stages, and the zoom path. */
export function Pipeline({ view, consult, place }: { view: RunView; consult: ConsultView; place: Place }) {
  const narrow = useMedia("(max-width: 700px)");
  const { strands, analysts } = strandsOf(view, consult);
  return (
    <>
      <div className="panel pipe">
        <Strands
          strands={strands}
          analysts={analysts}
          gates={consult.rounds}
          height={narrow ? 92 : 116}
          reached={reached(consult)}
          layer={place.layer}
          ranked={consult.recommended.length > 0}
          active={isActive(view)}
        />
        {/* biome-ignore lint/a11y/useSemanticElements: a toolbar of layers, not a fieldset */}
        <div className="stages" role="group" aria-label="Stages of the run">
          {LAYERS.map((name, layer) => {
            const state = stageState(view, consult, layer);
            const words = layerWords(view, consult, layer);
            return (
              <button
                key={name}
                type="button"
                className={clsx("stg", state)}
                aria-expanded={place.layer === layer}
                onClick={() => place.go({ layer: String(layer) })}
              >
                <span className="h">
                  <Icon name={ICONS[state] ?? "wait"} />
                  {name}
                  <span className="sr">, {state}</span>
                </span>
                <span className="d" title={words}>
                  {words}
                </span>
              </button>
            );
          })}
        </div>
      </div>
      <div className="zoombar">
        <nav aria-label="Zoom path">
          <button
            type="button"
            aria-current={place.layer === undefined ? "true" : undefined}
            onClick={() => place.go({ layer: "all" })}
          >
            Run
          </button>
          {place.layer !== undefined && (
            <>
              <span className="muted" aria-hidden="true">
                /
              </span>
              <button
                type="button"
                aria-current={place.layer !== 3 || !place.move ? "true" : undefined}
                onClick={() => place.go({ layer: String(place.layer) })}
              >
                {LAYERS[place.layer]}
              </button>
            </>
          )}
          {place.layer === 3 && place.move && (
            <span className="only-w crumbmove">
              <span className="muted" aria-hidden="true">
                /
              </span>
              <span className="here">{place.move}</span>
            </span>
          )}
        </nav>
        <div className="z">
          {place.layer === 3 && <StripKey />}
          {place.layer !== undefined && (
            <Button size="small" icon="zoomOut" className="zoomout" onClick={() => place.go({ layer: "all" })}>
              <span className="zt">Zoom out</span>
              <span className="kbd only-w" aria-hidden="true">
                Esc
              </span>
            </Button>
          )}
        </div>
      </div>
    </>
  );
}
