import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableResult;

/** RunSql FILE: executes a file's statements and waits for its INSERT. The PyPI package has no SQL client. */
public final class RunSql {
    public static void main(String[] arguments) throws Exception {
        TableEnvironment tables = TableEnvironment.create(EnvironmentSettings.inStreamingMode());
        for (String statement : Files.readString(Path.of(arguments[0])).split(";\\s*\n")) {
            if (statement.isBlank()) {
                continue;
            }
            TableResult result = tables.executeSql(statement.strip());
            if (result.getJobClient().isPresent()) {
                System.out.println("job " + result.getJobClient().get().getJobID());
                result.await();
            }
        }
    }
}
