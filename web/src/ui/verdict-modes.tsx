/** The ways to a verdict, as options of a select. */
export function VerdictModes() {
  return (
    <>
      <option value="full">blind panel, best moves debated again</option>
      <option value="panel">blind panel, each move debated once</option>
      <option value="off">scores of the defenders</option>
    </>
  );
}
